// SPDX-License-Identifier: Apache-2.0
#include "accounting/nic_addresses.hpp"

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
        const auto found = addresses.find(inventory::IpAddress::parse(text).value());
        return std::vector<unsigned>(found.begin(), found.end());
    };
    using Numbers = std::vector<unsigned>;
    EXPECT_EQ(find("192.0.2.1"), Numbers{1});
    EXPECT_EQ(find("::ffff:192.0.2.1"), Numbers{1}) << "IPv4 over an IPv6 socket";
    EXPECT_EQ(find("fe80::1"), (Numbers{1, 2}));
    EXPECT_EQ(find("192.0.2.9"), Numbers{3});
    EXPECT_EQ(find("127.0.0.1"), Numbers{});
    EXPECT_EQ(addresses.name(2), "eth1");
    EXPECT_TRUE(std::ranges::equal(addresses.reachable(), Numbers{1})) << "up, and a device";
}

} // namespace
} // namespace affinityd::accounting
