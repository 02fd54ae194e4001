// SPDX-License-Identifier: Apache-2.0
#include "accounting/nic_usage.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace affinityd::accounting {
namespace {

netdev::Nic nic(const std::string& name, std::vector<std::string> addresses, bool is_real = true) {
    netdev::Nic nic;
    nic.name = name;
    nic.up = true;
    nic.device = is_real ? "devices/" + name : "";
    nic.addresses = std::move(addresses);
    return nic;
}

TEST(NicAddresses, EveryNicOfAnAddressIsFoundButLoopback) {
    std::vector<netdev::Nic> nics{nic("lo", {"127.0.0.1", "192.0.2.1"}, false),
                                  nic("eth0", {"192.0.2.1", "fe80::1", "no address"}),
                                  nic("eth1", {"2001:db8::1", "fe80::1"}), nic("br0", {"192.0.2.9"}, false)};
    nics[2].up = false;
    const NicAddresses addresses(nics);
    const auto find = [&](const char* text) {
        const auto found = addresses.book(0).find(inventory::IpAddress::parse(text).value());
        return std::vector<unsigned>(found.begin(), found.end());
    };
    using Numbers = std::vector<unsigned>;
    EXPECT_EQ(find("192.0.2.1"), Numbers{1});
    EXPECT_EQ(find("::ffff:192.0.2.1"), Numbers{1}) << "IPv4 over an IPv6 socket";
    EXPECT_EQ(find("fe80::1"), (Numbers{1, 2}));
    EXPECT_EQ(find("192.0.2.9"), Numbers{3});
    EXPECT_EQ(find("127.0.0.1"), Numbers{});
    EXPECT_EQ(addresses.name(2), "eth1");
    EXPECT_TRUE(std::ranges::equal(addresses.book(0).reachable, Numbers{1})) << "up, and a device";
}

TEST(NicAddresses, AnAddressOfADummyIsThatOfNicsWithADefaultRoute) {
    std::vector<netdev::Nic> nics{nic("dummy0", {"192.0.2.1"}, false), nic("eth0", {}),
                                  nic("bond0", {}, false), nic("lo", {"192.0.2.2", "127.0.0.1"}, false)};
    nics[0].is_detached = true;
    nics[2].lower = {"eth0"};
    const auto find = [&](const char* text) {
        return NicAddresses(nics).book(0).find(inventory::IpAddress::parse(text).value()).size();
    };
    EXPECT_EQ(find("192.0.2.1"), 0U);
    nics[2].has_default_route = true;
    EXPECT_EQ(find("192.0.2.1"), 1U);
    EXPECT_EQ(find("192.0.2.2"), 1U);
    EXPECT_EQ(find("127.0.0.1"), 0U);
}

TEST(NicAddresses, AnAddressOfABridgeOrBondIsThatOfItsDevicesAndNeverAGuests) {
    std::vector<netdev::Nic> nics{nic("eth0", {}),
                                  nic("eth1", {"192.0.2.1"}),
                                  nic("bond0", {"192.0.2.2"}, false),
                                  nic("br0", {"192.0.2.3"}, false),
                                  nic("vnet0", {"192.0.2.4"}, false),
                                  nic("docker0", {"192.0.2.5"}, false),
                                  nic("wg0", {"192.0.2.6"}, false)};
    nics[2].lower = {"eth1", "eth0"};
    nics[3].lower = {"bond0", "vnet0"};
    nics[4].master = "br0";
    nics[5].lower = {"vnet0"};
    const NicAddresses addresses(nics);
    const auto find = [&](const char* text) {
        const auto found = addresses.book(0).find(inventory::IpAddress::parse(text).value());
        return std::vector<unsigned>(found.begin(), found.end());
    };
    using Numbers = std::vector<unsigned>;
    EXPECT_EQ(find("192.0.2.1"), Numbers{1});
    EXPECT_EQ(find("192.0.2.2"), (Numbers{0, 1}));
    EXPECT_EQ(find("192.0.2.3"), (Numbers{0, 1}));
    EXPECT_EQ(find("192.0.2.4"), Numbers{}) << "a guest's";
    EXPECT_EQ(find("192.0.2.5"), Numbers{});
    EXPECT_EQ(find("192.0.2.6"), Numbers{6}) << "the host's own";
    EXPECT_TRUE(std::ranges::equal(addresses.book(0).reachable, (Numbers{0, 1})));
}

} // namespace
} // namespace affinityd::accounting
