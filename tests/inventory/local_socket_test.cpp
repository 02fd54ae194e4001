// SPDX-License-Identifier: Apache-2.0
#include "inventory/sockets.hpp"

#include <array>
#include <cstring>
#include <initializer_list>
#include <random>

#include <gtest/gtest.h>

namespace affinityd::inventory {
namespace {

using State = SocketState;

/// struct inet_diag_msg laid out by hand: family, state, timer, retrans; ports (big-endian), addresses,
/// interface, cookie; expires, queues, uid, inode. 72 bytes.
struct DiagBytes {
    std::uint8_t family = 2, state = 10;
    std::uint16_t port = 8080, remote_port = 0;
    std::array<std::uint8_t, 16> local{}, remote{};
    std::uint32_t interface = 0, user = 65534, inode = 77;

    [[nodiscard]] std::vector<std::byte> build() const {
        std::vector<std::byte> bytes(72);
        const auto put = [&](std::size_t at, const auto& value) {
            std::memcpy(bytes.data() + at, &value, sizeof value);
        };
        put(0, family);
        put(1, state);
        put(4, static_cast<std::uint16_t>(port << 8 | port >> 8));
        put(6, static_cast<std::uint16_t>(remote_port << 8 | remote_port >> 8));
        put(8, local);
        put(24, remote);
        put(40, interface);
        put(64, user);
        put(68, inode);
        return bytes;
    }
};

TEST(InetDiag, Ipv4Listener) {
    const auto socket =
        parse_inet_diag(DiagBytes{.local = {192, 0, 2, 1}, .interface = 3}.build(), Protocol::tcp);
    ASSERT_TRUE(socket);
    EXPECT_EQ(socket->local.to_text(), "192.0.2.1");
    EXPECT_EQ(socket->port, 8080);
    EXPECT_EQ(socket->inode, 77U);
    EXPECT_EQ(socket->interface, 3U);
    EXPECT_EQ(socket->user, 65534U);
    EXPECT_TRUE(socket->listens());
    EXPECT_FALSE(socket->local.is_any());
}

TEST(InetDiag, Ipv6AndMappedIpv4) {
    const std::array<std::uint8_t, 16> local{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    const std::array<std::uint8_t, 16> remote{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
    auto socket = parse_inet_diag(
        DiagBytes{.family = 10, .state = 1, .remote_port = 443, .local = local, .remote = remote}.build(),
        Protocol::tcp);
    ASSERT_TRUE(socket);
    EXPECT_EQ(socket->local.to_text(), "2001:db8::1");
    EXPECT_EQ(socket->state, State::established);
    const std::array<std::uint8_t, 16> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 9};
    socket = parse_inet_diag(DiagBytes{.family = 10, .local = mapped}.build(), Protocol::tcp);
    EXPECT_EQ(socket->local.to_text(), "192.0.2.9") << "so that it compares with an interface's address";
}

TEST(InetDiag, WildcardsAreKnown) {
    EXPECT_TRUE(parse_inet_diag(DiagBytes{}.build(), Protocol::tcp)->local.is_any());
    EXPECT_TRUE(parse_inet_diag(DiagBytes{.family = 10}.build(), Protocol::tcp)->local.is_any());
    const std::array<std::uint8_t, 16> mapped_any{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
    EXPECT_TRUE(
        parse_inet_diag(DiagBytes{.family = 10, .local = mapped_any}.build(), Protocol::tcp)->local.is_any());
}

TEST(InetDiag, StatesDifferByProtocol) {
    EXPECT_EQ(parse_inet_diag(DiagBytes{.state = 7}.build(), Protocol::udp)->state, State::listen);
    EXPECT_EQ(parse_inet_diag(DiagBytes{.state = 7}.build(), Protocol::tcp)->state, State::other);
    EXPECT_EQ(parse_inet_diag(DiagBytes{.state = 1}.build(), Protocol::udp)->state, State::established);
    EXPECT_EQ(parse_inet_diag(DiagBytes{.state = 6}.build(), Protocol::tcp)->state, State::other);
}

TEST(InetDiag, HostileBytes) {
    EXPECT_FALSE(parse_inet_diag({}, Protocol::tcp));
    EXPECT_FALSE(parse_inet_diag(DiagBytes{.family = 1}.build(), Protocol::tcp));
    const auto whole = DiagBytes{}.build();
    for (std::size_t length = 0; length < whole.size(); ++length)
        EXPECT_FALSE(parse_inet_diag(std::span(whole).first(length), Protocol::tcp)) << length;
    std::mt19937 random(5);
    for (int round = 0; round < 5000; ++round) {
        auto bytes = DiagBytes{}.build();
        for (int i = 0; i < 6; ++i)
            bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        bytes.resize(random() % (bytes.size() + 1));
        static_cast<void>(parse_inet_diag(bytes, Protocol::tcp));
    }
}

constexpr const char* tail =
    " 00000000:00000000 00:00000000 00000000     0        0 1642 1 0000 100 0 0 10 0";

TEST(NetLine, BothFamilies) {
    auto socket = parse_net_line(std::string("   0: 0100007F:07E8 00000000:0000 0A") + tail, Protocol::tcp);
    ASSERT_TRUE(socket);
    EXPECT_EQ(socket->local.to_text(), "127.0.0.1");
    EXPECT_EQ(socket->port, 2024);
    EXPECT_EQ(socket->inode, 1642U);
    EXPECT_TRUE(socket->listens());
    socket = parse_net_line(
        std::string("  12: 00000000000000000000000001000000:0016 B80D0120000000000000000002000000:D431 01") +
            tail,
        Protocol::tcp);
    ASSERT_TRUE(socket);
    EXPECT_EQ(socket->local.to_text(), "::1");
    EXPECT_EQ(socket->state, State::established);
}

class BrokenNetLines : public testing::TestWithParam<const char*> {};

TEST_P(BrokenNetLines, HaveNoValue) {
    EXPECT_FALSE(parse_net_line(GetParam() + std::string(tail), Protocol::tcp));
}

INSTANTIATE_TEST_SUITE_P(Table, BrokenNetLines,
                         testing::Values("", "  sl  local_address rem_address   st",
                                         "0: 0100007F 00000000:0000 0A", "0: 0100007:07E8 00000000:0000 0A",
                                         "0: 0100007G:07E8 00000000:0000 0A",
                                         "0: 0100007F:17E80 00000000:0000 0A",
                                         "0: 0100007F: 00000000:0000 0A", "0: 0100007F:07E8 0000:0000 0A",
                                         "0: 0100007F:07E8 00000000:0000 XX",
                                         "0 0100007F:07E8 00000000:0000 0A"));

TEST(IpAddress, Ipv4IsTheSameWrittenEitherWay) {
    EXPECT_EQ(IpAddress::parse("192.0.2.9"), IpAddress::parse("::ffff:192.0.2.9"));
    EXPECT_EQ(IpAddress::parse("192.0.2.9")->to_text(), "192.0.2.9");
    EXPECT_EQ(IpAddress::parse("2001:db8::1")->to_text(), "2001:db8::1");
    for (const char* text : {"", "192.0.2", "2001:db8", "eth0", "192.0.2.1/24"})
        EXPECT_FALSE(IpAddress::parse(text)) << text;
    EXPECT_TRUE(IpAddress::parse("::")->is_any());
    EXPECT_TRUE(IpAddress::parse("0.0.0.0")->is_any());
    EXPECT_FALSE(IpAddress::parse("::1")->is_any());
}

TEST(NetLine, CutShort) {
    EXPECT_FALSE(parse_net_line("", Protocol::tcp));
    EXPECT_FALSE(parse_net_line(
        "0: 0100007F:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0", Protocol::tcp));
}

} // namespace
} // namespace affinityd::inventory
