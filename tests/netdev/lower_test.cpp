// SPDX-License-Identifier: Apache-2.0
#include "netdev/lower.hpp"

#include <gtest/gtest.h>

namespace affinityd::netdev {
namespace {

using Names = std::vector<std::string>;

Nic make(const std::string& name, Names lower = {}) {
    Nic nic;
    nic.name = name;
    nic.lower = std::move(lower);
    return nic;
}

Names below(const std::vector<Nic>& nics, std::size_t index) {
    Names names;
    for (const auto* nic : physical_lower(nics[index], nics))
        names.push_back(nic->name);
    return names;
}

TEST(PhysicalLower, StackEndsAtItsPorts) {
    const std::vector<Nic> nics{make("eth0"),
                                make("eth1"),
                                make("bond0", {"eth1", "eth0"}),
                                make("bond0.7", {"bond0"}),
                                make("br0", {"bond0.7", "tap0"}),
                                make("tap0")};
    EXPECT_EQ(below(nics, 0), Names{"eth0"}) << "without lower devices it is the interface itself";
    EXPECT_EQ(below(nics, 2), (Names{"eth0", "eth1"}));
    EXPECT_EQ(below(nics, 3), (Names{"eth0", "eth1"}));
    EXPECT_EQ(below(nics, 4), (Names{"eth0", "eth1", "tap0"}));
}

TEST(PhysicalLower, LoopsAndMissingDevicesHaveNone) {
    const std::vector<Nic> nics{make("a", {"b"}), make("b", {"a"}), make("c", {"elsewhere"}),
                                make("d", {"d"})};
    for (std::size_t i = 0; i < nics.size(); ++i)
        EXPECT_EQ(below(nics, i), Names{}) << nics[i].name;
}

TEST(PhysicalLower, DiamondsUponDiamondsAreNoWorseThanAList) {
    std::vector<Nic> nics{make("n0"), make("n1")};
    for (int level = 1; level < 200; ++level) // 2^200 ways down
        for (int side = 0; side < 2; ++side)
            nics.push_back(make("n" + std::to_string(level * 2 + side),
                                {"n" + std::to_string(level * 2 - 2), "n" + std::to_string(level * 2 - 1)}));
    EXPECT_EQ(below(nics, nics.size() - 1), (Names{"n0", "n1"}));
    std::vector<Nic> knot; // each upon each
    Names all;
    for (int i = 0; i < 60; ++i)
        all.push_back("k" + std::to_string(i));
    for (const auto& name : all)
        knot.push_back(make(name, all));
    EXPECT_EQ(below(knot, 0), Names{});
}

} // namespace
} // namespace affinityd::netdev
