// SPDX-License-Identifier: Apache-2.0
#include "netdev/link_monitor.hpp"
#include "netdev/napi.hpp"

#include <array>
#include <cstring>
#include <random>

#include <gtest/gtest.h>
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

namespace affinityd::netdev {
namespace {

using Bytes = std::vector<std::byte>;

template <class T>
void put(Bytes& bytes, const T& value) {
    const auto at = bytes.size();
    bytes.resize(at + ((sizeof value + 3U) & ~std::size_t{3}));
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

void put_attribute(Bytes& bytes, unsigned type, const Bytes& value) {
    put(bytes,
        nlattr{static_cast<std::uint16_t>(sizeof(nlattr) + value.size()), static_cast<std::uint16_t>(type)});
    bytes.insert(bytes.end(), value.begin(), value.end());
    bytes.resize((bytes.size() + 3U) & ~std::size_t{3});
}

Bytes text(const char* value) {
    const auto* first = reinterpret_cast<const std::byte*>(value);
    return {first, first + std::strlen(value) + 1};
}

Bytes number(std::uint32_t value) {
    Bytes bytes;
    put(bytes, value);
    return bytes;
}

Bytes message(unsigned type, const Bytes& payload) {
    Bytes bytes;
    nlmsghdr head{};
    head.nlmsg_len = static_cast<std::uint32_t>(sizeof head + payload.size());
    head.nlmsg_type = static_cast<std::uint16_t>(type);
    put(bytes, head);
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    bytes.resize((bytes.size() + 3U) & ~std::size_t{3});
    return bytes;
}

Bytes link_message(unsigned type, int ifindex, const char* name, unsigned flags,
                   unsigned char family = AF_UNSPEC) {
    Bytes payload;
    ifinfomsg info{};
    info.ifi_family = family;
    info.ifi_index = ifindex;
    info.ifi_flags = flags;
    put(payload, info);
    put_attribute(payload, IFLA_MTU, number(1500));
    put_attribute(payload, IFLA_IFNAME, text(name));
    return message(type, payload);
}

Bytes address_message(unsigned type, unsigned ifindex) {
    Bytes payload;
    ifaddrmsg info{};
    info.ifa_family = AF_INET;
    info.ifa_index = ifindex;
    put(payload, info);
    return message(type, payload);
}

Bytes ethtool_message(unsigned family, unsigned command, unsigned ifindex, const char* name) {
    Bytes payload;
    genlmsghdr generic{};
    generic.cmd = static_cast<std::uint8_t>(command);
    put(payload, generic);
    Bytes header;
    put_attribute(header, ETHTOOL_A_HEADER_DEV_INDEX, number(ifindex));
    put_attribute(header, ETHTOOL_A_HEADER_DEV_NAME, text(name));
    put_attribute(payload, 1 | NLA_F_NESTED, header);
    return message(family, payload);
}

TEST(RouteMessages, LinksAndAddresses) {
    Bytes all;
    for (const auto& part :
         {link_message(RTM_NEWLINK, 3, "eth3", IFF_UP | IFF_RUNNING), link_message(RTM_NEWLINK, 4, "e", 0),
          address_message(RTM_DELADDR, 3), link_message(RTM_DELLINK, 3, "eth3", IFF_UP)})
        all.insert(all.end(), part.begin(), part.end());
    const std::vector<LinkEvent> expected = {{3, "eth3"}, {4, "e"}, {3, ""}, {3, "eth3"}};
    EXPECT_EQ(parse_route_messages(all), expected);
}

TEST(RouteMessages, OthersArePassedOver) {
    EXPECT_TRUE(parse_route_messages(link_message(RTM_NEWROUTE, 3, "eth3", IFF_UP)).empty());
    EXPECT_TRUE(parse_route_messages(link_message(RTM_NEWLINK, 3, "eth3", IFF_UP, AF_BRIDGE)).empty());
    EXPECT_TRUE(parse_route_messages(link_message(RTM_NEWLINK, 0, "eth3", IFF_UP)).empty());
    EXPECT_TRUE(parse_route_messages(link_message(RTM_NEWLINK, -1, "eth3", IFF_UP)).empty());
}

TEST(EthtoolMessages, ChannelsAndRingsOfTheRightFamily) {
    const std::vector<LinkEvent> expected = {{5, "eth5"}};
    EXPECT_EQ(parse_ethtool_messages(ethtool_message(21, ETHTOOL_MSG_CHANNELS_NTF, 5, "eth5"), 21), expected);
    EXPECT_EQ(parse_ethtool_messages(ethtool_message(21, ETHTOOL_MSG_RINGS_NTF, 5, "eth5"), 21), expected);
    EXPECT_TRUE(parse_ethtool_messages(ethtool_message(22, ETHTOOL_MSG_CHANNELS_NTF, 5, "eth5"), 21).empty());
    EXPECT_TRUE(parse_ethtool_messages(ethtool_message(21, ETHTOOL_MSG_PAUSE_NTF, 5, "eth5"), 21).empty());
}

TEST(CpuUevent, IsRecognizedAmongOthersAndAnyBytes) {
    using namespace std::string_literals;
    const std::pair<std::string, bool> cases[] = {
        {"online@/devices/system/cpu/cpu3\0ACTION=online\0SUBSYSTEM=cpu\0SEQNUM=1\0"s, true},
        {"add@/devices/x\0SUBSYSTEM=cpuid\0"s, false},
        {"add@/devices/x\0XSUBSYSTEM=cpu\0"s, false},
        {"SUBSYSTEM=cpu\0"s, false},
        {"a\0SUBSYSTEM=cpu"s, false},
        {"\0SUBSYSTEM=cpu\0"s, true},
        {"", false},
        {"\0\0\0"s, false},
    };
    for (const auto& [message, expected] : cases)
        EXPECT_EQ(is_cpu_uevent(message), expected) << message;
}

TEST(Messages, EveryCutIsSafe) {
    for (const auto& whole :
         {link_message(RTM_NEWLINK, 3, "eth3", IFF_UP), address_message(RTM_NEWADDR, 3)}) {
        EXPECT_EQ(parse_route_messages(whole).size(), 1U);
        for (std::size_t length = 0; length < whole.size();
             ++length) // a copy, so that reading beyond it is seen by a sanitizer
            EXPECT_TRUE(parse_route_messages(
                            Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)))
                            .empty());
    }
    const auto whole = ethtool_message(21, ETHTOOL_MSG_CHANNELS_NTF, 5, "eth5");
    for (std::size_t length = 0; length < whole.size(); ++length)
        EXPECT_TRUE(parse_ethtool_messages(
                        Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)), 21)
                        .empty());
}

TEST(Messages, RandomBytesDoNoHarm) {
    std::mt19937 random(7);
    const auto seed = link_message(RTM_NEWLINK, 3, "eth3", IFF_UP);
    const auto generic = ethtool_message(21, ETHTOOL_MSG_CHANNELS_NTF, 5, "eth5");
    std::size_t events = 0;
    for (int round = 0; round < 20000; ++round) {
        auto bytes = round % 2 == 0 ? seed : generic;
        for (int change = 0; change < 3; ++change)
            bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        events += parse_route_messages(bytes).size() + parse_ethtool_messages(bytes, 21).size();
    }
    EXPECT_GT(events, 1000U); // many a change hits what is not read
    EXPECT_LE(events, 20000U);
}

TEST(ParseChannels, Counts) {
    Bytes header;
    put_attribute(header, ETHTOOL_A_HEADER_DEV_INDEX, number(2));
    Bytes all;
    put_attribute(all, ETHTOOL_A_CHANNELS_HEADER | NLA_F_NESTED, header);
    put_attribute(all, ETHTOOL_A_CHANNELS_COMBINED_MAX, number(64));
    put_attribute(all, ETHTOOL_A_CHANNELS_COMBINED_COUNT, number(8));
    put_attribute(all, ETHTOOL_A_CHANNELS_OTHER_COUNT, number(1));
    const auto parsed = parse_channels(all);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->first, 2U);
    EXPECT_EQ(parsed->second.combined, 8U);
    EXPECT_EQ(parsed->second.max_combined, 64U);
    EXPECT_EQ(parsed->second.other, 1U);
    EXPECT_EQ(parsed->second.rx, std::nullopt);
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(header.size() + sizeof(nlattr)));
    EXPECT_FALSE(parse_channels(all));
    EXPECT_FALSE(parse_channels({}));
}

} // namespace
} // namespace affinityd::netdev
