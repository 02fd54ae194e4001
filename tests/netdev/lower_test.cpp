// SPDX-License-Identifier: Apache-2.0
#include "netdev/lower.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace affinityd::netdev {
namespace {

using Names = std::vector<std::string>;

/// Made of software.
Nic make(const std::string& name, Names lower = {}, const std::string& master = {}) {
    Nic nic;
    nic.name = name;
    nic.lower = std::move(lower);
    nic.master = master;
    return nic;
}

Nic real(const std::string& name, Names lower = {}) {
    Nic nic = make(name, std::move(lower));
    nic.device = "devices/pci0000:00/" + name;
    return nic;
}

Names below(const std::vector<Nic>& nics, std::size_t index) {
    Names names;
    for (const auto* nic : Stacks(nics).under(nics[index]))
        names.push_back(nic->name);
    return names;
}

TEST(Stacks, EndAtTheirPhysicalPorts) {
    const std::vector<Nic> nics{real("eth0"),
                                real("eth1"),
                                make("bond0", {"eth1", "eth0"}),
                                make("bond0.7", {"bond0"}),
                                make("br0", {"bond0.7", "tap0"}),
                                make("tap0"),
                                make("macvlan0", {"br0"})};
    EXPECT_EQ(below(nics, 0), Names{"eth0"}) << "without lower devices it is the interface itself";
    EXPECT_EQ(below(nics, 2), (Names{"eth0", "eth1"}));
    EXPECT_EQ(below(nics, 3), (Names{"eth0", "eth1"}));
    EXPECT_EQ(below(nics, 4), (Names{"eth0", "eth1"}));
    EXPECT_EQ(below(nics, 5), Names{"tap0"});
    EXPECT_EQ(below(nics, 6), (Names{"eth0", "eth1"}));
}

TEST(Stacks, PortsOfGuestsAreNoneOfTheirs) {
    std::vector<Nic> nics{make("br0", {"eth0", "veth1", "vnet2", "rep3"}),
                          real("eth0"),
                          make("veth1", {}, "br0"),
                          make("vnet2", {}, "br0"),
                          real("rep3"),
                          make("docker0", {"veth4"}),
                          make("veth4", {}, "docker0")};
    nics[4].is_representor = true;
    EXPECT_EQ(below(nics, 0), Names{"eth0"});
    EXPECT_EQ(below(nics, 2), Names{"veth1"}) << "named itself";
    EXPECT_EQ(below(nics, 5), Names{});
    std::vector<bool> foreign;
    for (const auto& nic : nics)
        foreign.push_back(is_foreign_port(nic));
    EXPECT_EQ(foreign, (std::vector<bool>{false, false, true, true, true, false, true}));
    EXPECT_FALSE(is_foreign_port(make("wg0"))) << "the host's own";
    EXPECT_FALSE(is_foreign_port(make("bond0.5", {"bond0"}, "br0"))) << "it may lead to a device";
}

TEST(Stacks, WhatTakesPortsAndHasNoneLeadsToNothing) {
    for (const char* driver : {"bonding", "bridge", "team"}) {
        std::vector<Nic> nics{make("top0"), make("top0.7", {"top0"}), real("eth0")};
        nics[0].driver = driver;
        EXPECT_EQ(below(nics, 0), Names{}) << driver;
        EXPECT_EQ(below(nics, 1), Names{}) << driver;
        nics[0].lower = {"eth0"};
        EXPECT_EQ(below(nics, 0), Names{"eth0"}) << driver;
    }
}

TEST(Stacks, ADeviceOnTopOfAnotherLeadsToThatOne) {
    const std::vector<Nic> nics{real("eth0", {"vf0"}), real("vf0"), real("lan1", {"eth1"}), real("eth1")};
    EXPECT_EQ(below(nics, 0), Names{"vf0"}) << "hv_netvsc and its virtual function";
    EXPECT_EQ(below(nics, 2), Names{"eth1"}) << "a switch's port and what connects it with the CPU";
}

TEST(Stacks, SparesAreWhatNoBondUsesNow) {
    std::vector<Nic> nics{real("eth0"), real("eth1"), real("eth2"), make("bond0", {"eth0", "eth1", "eth2"}),
                          make("bond0.7", {"bond0"})};
    const auto spares = [&] {
        const Stacks stacks(nics);
        Names names;
        for (const auto name : stacks.spares())
            names.emplace_back(name);
        return names;
    };
    EXPECT_EQ(spares(), Names{}) << "all carry traffic";
    nics[3].active_lower = "eth1";
    EXPECT_EQ(spares(), (Names{"eth0", "eth2"}));
    for (const char* unknown : {"elsewhere", ""}) {
        nics[3].active_lower = unknown;
        EXPECT_EQ(spares(), Names{});
    }
    nics[3].active_lower = "eth1";
    nics.push_back(make("bond1", {"eth1", "eth2"}));
    nics.back().active_lower = "eth2";
    EXPECT_EQ(spares(), Names{"eth0"}) << "in use by one of two";
}

Nic up(Nic nic, const char* operstate = "up") {
    nic.operstate = operstate;
    return nic;
}

Names spares_of(const std::vector<Nic>& nics) {
    Names names;
    const Stacks stacks(nics);
    for (const auto name : stacks.spares())
        names.emplace_back(name);
    return names;
}

TEST(Stacks, WhatIsOnTopOfABondMakesNoneOfItsSparesActive) {
    const auto vlan = up(make("bond0.7", {"bond0"}));
    const auto bridge = up(make("br0", {"bond0.7", "tap0"}));
    for (const bool one_at_a_time : {true, false}) {
        auto bond = up(make("bond0", {"eth0", "eth1"}));
        if (one_at_a_time) bond.active_lower = "eth1";
        std::vector<Nic> nics{up(real("eth0"), one_at_a_time ? "up" : "down"), up(real("eth1")), bond};
        EXPECT_EQ(spares_of(nics), Names{"eth0"});
        nics.push_back(vlan);
        EXPECT_EQ(spares_of(nics), Names{"eth0"}) << "a VLAN";
        nics.push_back(bridge);
        nics.push_back(up(make("tap0"), "unknown"));
        EXPECT_EQ(spares_of(nics), Names{"eth0"}) << "and a bridge";
        std::ranges::reverse(nics);
        EXPECT_EQ(spares_of(nics), Names{"eth0"}) << "in any order";
    }
}

TEST(Stacks, WhatIsBelowASpareIsSpare) {
    auto bond = up(make("bond0", {"eth0.5", "eth1.5"}));
    bond.active_lower = "eth0.5";
    std::vector<Nic> nics{up(real("eth0")), up(real("eth1")), up(make("eth0.5", {"eth0"})),
                          up(make("eth1.5", {"eth1"})), bond};
    EXPECT_EQ(spares_of(nics), Names{"eth1"});
    nics.push_back(up(make("eth1.6", {"eth1"})));
    EXPECT_EQ(spares_of(nics), Names{}) << "another VLAN on it is in use";
}

TEST(Stacks, LoopsAndMissingDevicesHaveNone) {
    const std::vector<Nic> nics{make("a", {"b"}), make("b", {"a"}), make("c", {"elsewhere"}),
                                real("d", {"d"})};
    for (std::size_t i = 0; i < nics.size(); ++i)
        EXPECT_EQ(below(nics, i), Names{}) << nics[i].name;
}

TEST(Stacks, DiamondsUponDiamondsAreNoWorseThanAList) {
    std::vector<Nic> nics{real("n0"), real("n1")};
    for (int level = 1; level < 200; ++level) // 2^200 ways down
        for (int side = 0; side < 2; ++side)
            nics.push_back(make("n" + std::to_string(level * 2 + side),
                                {"n" + std::to_string(level * 2 - 2), "n" + std::to_string(level * 2 - 1)}));
    EXPECT_EQ(below(nics, nics.size() - 1), (Names{"n0", "n1"}));
    std::vector<Nic> wide{make("br0")};
    for (int i = 0; i < 3000; ++i) {
        wide.push_back(make("veth" + std::to_string(i), {}, "br0"));
        wide[0].lower.push_back(wide.back().name);
        wide.push_back(make("br0." + std::to_string(i), {"br0"}));
    }
    const Stacks stacks(wide);
    std::size_t found = 0;
    for (const auto& nic : wide) // three thousand times three thousand ports
        if (!nic.lower.empty()) found += stacks.under(nic).size();
    EXPECT_EQ(found, 0U);
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
