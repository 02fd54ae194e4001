// SPDX-License-Identifier: Apache-2.0
#include "machine/machine.hpp"
#include "machines.hpp"

#include <gtest/gtest.h>

namespace affinityd::machine {
namespace {

using test::two_sockets;

TEST(NearestOthers, ComeFromTheCoreTheCacheGroupTheNodeAndTheRest) {
    const auto topology = two_sockets();
    const auto others = [&](unsigned cpu, const CpuSet& allowed) {
        return nearest_others(topology, cpu, allowed);
    };
    EXPECT_EQ(others(2, CpuSet::range(0, 6)), (std::vector<unsigned>{3, 0, 1, 4, 5, 6}))
        << "7 is not allowed";
    EXPECT_EQ(others(5, CpuSet::range(0, 6)), (std::vector<unsigned>{4, 6, 0, 1, 2, 3}));
    EXPECT_TRUE(others(2, {}).empty());
}

TEST(NearestOthers, AreOnline) {
    EXPECT_EQ(nearest_others(two_sockets(CpuSet{3, 5}), 2, CpuSet::range(0, 7)),
              (std::vector<unsigned>{0, 1, 4, 6, 7}));
}

TEST(NearCpus, AreTheOnlineCpusOfTheNode) {
    auto machine = test::plain(CpuSet{5});
    test::add_nic(machine, "eth0", 1, 1, 30);
    auto& nic = machine.nics.front();
    nic.local_cpus = CpuSet::range(0, 7); // old firmware names all CPUs
    EXPECT_EQ(near_cpus(machine, nic), (CpuSet{4, 6, 7}));
    nic.node.reset();
    EXPECT_EQ(near_cpus(machine, nic), machine.topology.online);
    nic.local_cpus = CpuSet{2, 5};
    EXPECT_EQ(near_cpus(machine, nic), CpuSet{2});
    nic.local_cpus = CpuSet{5};
    EXPECT_EQ(near_cpus(machine, nic), machine.topology.online) << "none of its CPUs is online";
    EXPECT_EQ(nic_cpus(machine).at("eth0"), machine.topology.online);
}

TEST(NearCpus, OfABondAreThoseOfItsPortsAndNotOfItsGuests) {
    auto machine = test::plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    test::add_nic(machine, "eth1", 1, 1, 40);
    for (const auto& [name, lower] : {std::pair<const char*, std::vector<std::string>>{"tap0", {}},
                                      {"bond0", {"eth0", "eth1"}},
                                      {"br0", {"eth1", "tap0"}},
                                      {"br1", {"tap0"}}}) {
        auto& nic = machine.nics.emplace_back();
        nic.name = name;
        nic.lower = lower;
    }
    const auto near = nic_cpus(machine);
    EXPECT_EQ(near.at("eth1"), CpuSet::range(4, 7));
    EXPECT_EQ(near.at("bond0"), CpuSet::range(0, 7));
    EXPECT_EQ(near.at("br0"), CpuSet::range(4, 7));
    EXPECT_EQ(near.at("br1"), machine.topology.online) << "nothing of it is anywhere";
}

} // namespace
} // namespace affinityd::machine
