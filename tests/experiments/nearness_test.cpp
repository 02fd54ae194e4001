// SPDX-License-Identifier: Apache-2.0
#include "experiments/nearness.hpp"
#include "machine/machines.hpp"

#include <gtest/gtest.h>

namespace affinityd::experiments {
namespace {

using machine::test::two_sockets;

/// A package of two nodes (sub-NUMA clustering), each with two LLC groups of two cores without SMT.
topology::Topology clustered() {
    topology::Topology topology;
    topology.online = topology.present = CpuSet::range(0, 7);
    topology.packages = {CpuSet::range(0, 7)};
    for (unsigned node = 0; node < 2; ++node)
        topology.nodes.push_back({node, CpuSet::range(node * 4, node * 4 + 3), {}, {}});
    for (unsigned llc = 0; llc < 4; ++llc)
        topology.caches.push_back(
            {3, topology::Cache::Type::unified, 1U << 20, CpuSet::range(llc * 2, llc * 2 + 1)});
    for (unsigned cpu = 0; cpu < 8; ++cpu)
        topology.cpus.push_back({cpu, 0, {}, {}, static_cast<int>(cpu), cpu / 4, {}, {cpu}});
    return topology;
}

TEST(Nearness, IsTheNearestThatHolds) {
    const Nearness near(two_sockets());
    EXPECT_EQ(near.between(0, 1), Near::core);
    EXPECT_EQ(near.between(1, 3), Near::llc);
    EXPECT_EQ(near.between(3, 4), Near::across);
    const Nearness inside(clustered());
    EXPECT_EQ(inside.between(0, 1), Near::llc);
    EXPECT_EQ(inside.between(1, 2), Near::node);
    EXPECT_EQ(inside.between(3, 4), Near::package);
}

TEST(Nearness, OfACpuThatIsOfflineIsToNone) {
    const Nearness near(two_sockets(CpuSet{3}));
    EXPECT_EQ(near.between(0, 3), Near::across) << "CPU 0 is not its sibling";
    EXPECT_EQ(near.between(2, 3), Near::across);
}

TEST(Nearness, OfAMachineThatSaysNothingIsOneGroup) {
    topology::Topology topology;
    topology.online = CpuSet{0, 1};
    topology.cpus = {{0, {}, {}, {}, {}, {}, {}, {0}}, {1, {}, {}, {}, {}, {}, {}, {1}}};
    EXPECT_EQ(Nearness(topology).between(0, 1), Near::llc);
}

TEST(Nearness, FindsPairs) {
    const Nearness near(two_sockets());
    const CpuSet some{0, 1, 2, 5};
    EXPECT_EQ(near.pairs(some, Near::core), (std::vector<CpuPair>{{0, 1}}));
    EXPECT_EQ(near.pairs(some, Near::llc), (std::vector<CpuPair>{{0, 2}, {1, 2}}));
    EXPECT_EQ(near.pairs(some, Near::across), (std::vector<CpuPair>{{0, 5}, {1, 5}, {2, 5}}));
    EXPECT_EQ(near.first_pair(some, Near::across), (CpuPair{0, 5}));
    EXPECT_FALSE(near.first_pair(some, Near::package));
    EXPECT_FALSE(near.first_pair(CpuSet{3}, Near::core));
}

TEST(Nearness, ChoosesOneCpuOfEachCore) {
    EXPECT_EQ(one_per_core(two_sockets(), CpuSet::range(0, 7)), (CpuSet{0, 2, 4, 6}));
    EXPECT_EQ(one_per_core(two_sockets(), CpuSet{1, 4, 5}), (CpuSet{1, 4}));
    EXPECT_TRUE(one_per_core(two_sockets(), {}).empty());
}

} // namespace
} // namespace affinityd::experiments
