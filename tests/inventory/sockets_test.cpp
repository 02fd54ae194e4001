// SPDX-License-Identifier: Apache-2.0
#include "inventory/sockets.hpp"
#include "recorded.hpp"

#include <array>
#include <cstring>
#include <initializer_list>
#include <random>

#include <gtest/gtest.h>

namespace affinityd::inventory {
namespace {

using namespace test;
using State = SocketState;

/// struct inet_diag_msg laid out by hand: family, state, timer, retrans; ports (big-endian), addresses,
/// interface, cookie; expires, queues, uid, inode. 72 bytes.
struct DiagBytes {
    std::uint8_t family = 2, state = 10;
    std::uint16_t port = 8080, remote_port = 0;
    std::array<std::uint8_t, 16> local{}, remote{};
    std::uint32_t interface = 0, inode = 77;
    std::vector<std::byte> attributes{};

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
        put(68, inode);
        bytes.insert(bytes.end(), attributes.begin(), attributes.end());
        return bytes;
    }
};

std::vector<std::byte> attribute(std::uint16_t type, std::size_t length, std::uint16_t claimed) {
    std::vector<std::byte> bytes(4 + length);
    std::memcpy(bytes.data(), &claimed, 2);
    std::memcpy(bytes.data() + 2, &type, 2);
    return bytes;
}

TEST(InetDiag, Ipv4Listener) {
    const auto socket =
        parse_inet_diag(DiagBytes{.local = {192, 0, 2, 1}, .interface = 3}.build(), Protocol::tcp);
    ASSERT_TRUE(socket);
    EXPECT_EQ(socket->local, "192.0.2.1");
    EXPECT_EQ(socket->port, 8080);
    EXPECT_EQ(socket->inode, 77U);
    EXPECT_EQ(socket->interface, 3U);
    EXPECT_TRUE(socket->listens());
    EXPECT_FALSE(socket->any_address);
    EXPECT_EQ(socket->remote, "");
}

TEST(InetDiag, Ipv6AndMappedIpv4) {
    const std::array<std::uint8_t, 16> local{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    const std::array<std::uint8_t, 16> remote{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
    auto socket = parse_inet_diag(
        DiagBytes{.family = 10, .state = 1, .remote_port = 443, .local = local, .remote = remote}.build(),
        Protocol::tcp);
    ASSERT_TRUE(socket);
    EXPECT_EQ(socket->local, "2001:db8::1");
    EXPECT_EQ(socket->remote, "fe80::2");
    EXPECT_EQ(socket->remote_port, 443);
    EXPECT_EQ(socket->state, State::established);
    const std::array<std::uint8_t, 16> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 9};
    socket = parse_inet_diag(DiagBytes{.family = 10, .local = mapped}.build(), Protocol::tcp);
    EXPECT_EQ(socket->local, "192.0.2.9") << "so that it compares with an interface's address";
}

TEST(InetDiag, WildcardsAreTold) {
    EXPECT_TRUE(parse_inet_diag(DiagBytes{}.build(), Protocol::tcp)->any_address);
    EXPECT_TRUE(parse_inet_diag(DiagBytes{.family = 10}.build(), Protocol::tcp)->any_address);
    const std::array<std::uint8_t, 16> mapped_any{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
    EXPECT_TRUE(
        parse_inet_diag(DiagBytes{.family = 10, .local = mapped_any}.build(), Protocol::tcp)->any_address);
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
    for (const std::uint16_t claimed :
         {std::uint16_t{0}, std::uint16_t{3}, std::uint16_t{200}, std::uint16_t{65535}}) {
        const auto socket =
            parse_inet_diag(DiagBytes{.attributes = attribute(2, 100, claimed)}.build(), Protocol::tcp);
        ASSERT_TRUE(socket);
        EXPECT_EQ(socket->bytes, 0U) << claimed;
    }
    std::mt19937 random(5);
    for (int round = 0; round < 5000; ++round) {
        auto bytes = DiagBytes{.attributes = attribute(2, 200, 204)}.build();
        for (int i = 0; i < 6; ++i)
            bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        bytes.resize(random() % (bytes.size() + 1));
        static_cast<void>(parse_inet_diag(bytes, Protocol::tcp));
    }
}

TEST(InetDiag, BytesOnlyFromALongEnoughInfo) {
    auto info = attribute(2, 232, 236); // INET_DIAG_INFO; bytes_acked stands at 120, bytes_received at 128
    const std::uint64_t acked = 1000;
    const std::uint64_t received = 23;
    std::memcpy(info.data() + 4 + 120, &acked, 8);
    std::memcpy(info.data() + 4 + 128, &received, 8);
    EXPECT_EQ(parse_inet_diag(DiagBytes{.attributes = info}.build(), Protocol::tcp)->bytes, 1023U);
    EXPECT_EQ(parse_inet_diag(DiagBytes{.attributes = attribute(2, 100, 104)}.build(), Protocol::tcp)->bytes,
              0U);
    EXPECT_EQ(parse_inet_diag(DiagBytes{.attributes = attribute(3, 232, 236)}.build(), Protocol::tcp)->bytes,
              0U);
}

constexpr const char* tail =
    " 00000000:00000000 00:00000000 00000000     0        0 1642 1 0000 100 0 0 10 0";

TEST(NetLine, BothFamilies) {
    auto socket = parse_net_line(std::string("   0: 0100007F:07E8 00000000:0000 0A") + tail, Protocol::tcp);
    ASSERT_TRUE(socket);
    EXPECT_EQ(socket->local, "127.0.0.1");
    EXPECT_EQ(socket->port, 2024);
    EXPECT_EQ(socket->inode, 1642U);
    EXPECT_TRUE(socket->listens());
    socket = parse_net_line(
        std::string("  12: 00000000000000000000000001000000:0016 B80D0120000000000000000002000000:D431 01") +
            tail,
        Protocol::tcp);
    ASSERT_TRUE(socket);
    EXPECT_EQ(socket->local, "::1");
    EXPECT_EQ(socket->remote, "2001:db8::2");
    EXPECT_EQ(socket->remote_port, 54321);
    EXPECT_EQ(socket->state, State::established);
}

class BrokenNetLines : public testing::TestWithParam<const char*> {};

TEST_P(BrokenNetLines, GiveNothing) {
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

TEST(NetLine, CutShort) {
    EXPECT_FALSE(parse_net_line("", Protocol::tcp));
    EXPECT_FALSE(parse_net_line(
        "0: 0100007F:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0", Protocol::tcp));
}

TEST(Recording, SocketsOfItsFiles) {
    const Tree tree;
    tree.file("proc/net/tcp", std::string("  sl local\n   0: 0100007F:07E8 00000000:0000 0A") + tail +
                                  "\n   1: 0100007F:07E8 0100007F:0001 01" + tail +
                                  "\n   2: 0100007F:07E8 0100007F:0001 06" + tail + "\n");
    const auto root = open_root(tree);
    EXPECT_EQ(read_sockets(root, Wanted::listeners).sockets.size(), 1U);
    EXPECT_EQ(read_sockets(root, Wanted::all).sockets.size(), 2U)
        << "a connection that is closing serves nobody";
    const auto cut = read_sockets(root, Wanted::all, 1); // of each kind
    EXPECT_LT(cut.sockets.size(), 2U);
    EXPECT_TRUE(cut.truncated);
    EXPECT_TRUE(shares_network_namespace(root, 1)) << "not known to be another";
    EXPECT_TRUE(socket_inodes(root, 1).empty());
}

} // namespace
} // namespace affinityd::inventory
