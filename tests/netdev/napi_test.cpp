// SPDX-License-Identifier: Apache-2.0
#include "netdev/napi.hpp"

#include <array>
#include <cstring>

#include <gtest/gtest.h>

namespace affinityd::netdev {
namespace {

using Bytes = std::vector<std::byte>;

/// Attributes as the kernel sends them: 16-bit length with header, 16-bit type, value, padding to four bytes.
Bytes attributes(std::initializer_list<std::pair<unsigned, unsigned>> values) {
    Bytes bytes;
    for (const auto& [type, value] : values) {
        const std::array<std::uint16_t, 2> head{8, static_cast<std::uint16_t>(type)};
        const auto at = bytes.size();
        bytes.resize(at + 8);
        std::memcpy(bytes.data() + at, head.data(), 4);
        std::memcpy(bytes.data() + at + 4, &value, 4);
    }
    return bytes;
}

TEST(ParseNapi, AllAttributes) {
    const auto fact = parse_napi(attributes({{1, 2}, {2, 8193}, {3, 130}, {4, 777}, {99, 1}}));
    ASSERT_TRUE(fact);
    EXPECT_EQ(*fact, (NapiFact{2, 8193, 130, 777}));
}

TEST(ParseNapi, DriversThatTellNoIrq) {
    const auto fact = parse_napi(attributes({{2, 8193}, {1, 2}}));
    ASSERT_TRUE(fact);
    EXPECT_EQ(*fact, (NapiFact{2, 8193, std::nullopt, std::nullopt}));
    EXPECT_FALSE(parse_napi(attributes({{2, 8193}})));
    EXPECT_FALSE(parse_napi(attributes({{1, 2}})));
    EXPECT_EQ(parse_napi(attributes({{1, 2}, {2, 1}, {4, 0xffffffff}}))->thread, std::nullopt);
}

TEST(ParseQueue, BothDirections) {
    EXPECT_EQ(parse_queue(attributes({{1, 5}, {2, 2}, {3, 0}, {4, 8193}})),
              (QueueFact{2, 5, Direction::rx, 8193}));
    EXPECT_EQ(parse_queue(attributes({{1, 5}, {2, 2}, {3, 1}})),
              (QueueFact{2, 5, Direction::tx, std::nullopt}));
    EXPECT_FALSE(parse_queue(attributes({{1, 5}, {2, 2}, {3, 7}})));
    EXPECT_FALSE(parse_queue(attributes({{1, 5}, {2, 2}})));
}

TEST(ParseNapi, CutAndHostileBytes) {
    const auto whole = attributes({{1, 2}, {2, 8193}, {3, 130}});
    for (std::size_t length = 0; length < 16; ++length)
        EXPECT_FALSE(parse_napi({whole.data(), length})) << length;
    auto zero = whole;
    zero[0] = std::byte{0}; // a length of nothing must not loop for ever
    EXPECT_FALSE(parse_napi(zero));
    auto beyond = whole;
    beyond[0] = std::byte{0xff};
    EXPECT_FALSE(parse_napi(beyond));
    auto narrow = whole;
    narrow[0] = std::byte{5}; // a value of one byte where four belong
    EXPECT_FALSE(parse_napi(narrow));
}

TEST(LinkQueues, ByInterfaceDirectionAndIndex) {
    std::vector<Nic> nics(2);
    nics[0].ifindex = 2;
    nics[0].queues = {{Direction::rx, 0}, {Direction::rx, 1}, {Direction::tx, 0}};
    nics[1].ifindex = 3;
    nics[1].queues = {{Direction::rx, 0}};
    const std::vector<QueueFact> queues = {{2, 0, Direction::rx, 11}, {2, 1, Direction::rx, std::nullopt},
                                           {2, 0, Direction::tx, 11}, {2, 9, Direction::rx, 11},
                                           {9, 0, Direction::rx, 11}, {3, 0, Direction::rx, 12}};
    const std::vector<NapiFact> napis = {
        {2, 11, 130, std::nullopt}, {3, 11, 140, std::nullopt}, {3, 12, std::nullopt, 500}};
    link_queues(nics, queues, napis);
    EXPECT_EQ(nics[0].queues[0].irq, 130U);
    EXPECT_EQ(nics[0].queues[0].napi_id, 11U);
    EXPECT_EQ(nics[0].queues[1].irq, std::nullopt);
    EXPECT_EQ(nics[0].queues[2].irq, 130U);
    EXPECT_EQ(nics[1].queues[0].irq, std::nullopt);
    EXPECT_EQ(nics[1].queues[0].napi_thread, 500);
}

TEST(LinkQueues, ThreadsOfADriverThatLinksNothingGoInTheirOrder) {
    std::vector<Nic> nics(2);
    nics[0].ifindex = 3;
    nics[1].ifindex = 4;
    for (auto& nic : nics)
        nic.queues = {{Direction::rx, 0}, {Direction::rx, 1}, {Direction::tx, 0}};
    const std::vector<NapiFact> napis = {{3, 902, std::nullopt, 51},
                                         {3, 901, std::nullopt, 50},
                                         {4, 903, std::nullopt, 52},
                                         {4, 904, std::nullopt, std::nullopt}};
    link_queues(nics, {}, napis);
    EXPECT_EQ(nics[0].queues[0].napi_thread, 50);
    EXPECT_EQ(nics[0].queues[1].napi_thread, 51);
    EXPECT_FALSE(nics[1].queues[0].napi_thread) << "two queues, one thread: nobody knows whose";
    EXPECT_FALSE(nics[1].queues[1].napi_thread);
}

TEST(NapiThread, Names) {
    EXPECT_EQ(parse_napi_thread("napi/eth0-8193")->interface, "eth0");
    EXPECT_EQ(parse_napi_thread("napi/eth0-8193")->napi_id, 8193U);
    EXPECT_EQ(parse_napi_thread("napi/my-nic-12")->interface, "my-nic");
    EXPECT_EQ(parse_napi_thread("napi/eth10-8193")->napi_id, 8193U);
    EXPECT_FALSE(parse_napi_thread("napi/enp65s0f1n"));
    EXPECT_FALSE(parse_napi_thread("napi/enp65s0f1-"));
    EXPECT_EQ(parse_napi_thread("napi/enp4s0f0np0-8194")->napi_id, 8194U); // whole since Linux 5.17
    EXPECT_FALSE(parse_napi_thread("napi/"));
    EXPECT_FALSE(parse_napi_thread("napi/-3"));
    EXPECT_FALSE(parse_napi_thread("ksoftirqd/0"));
}

std::vector<int> threads_of(const Nic& nic) {
    std::vector<int> tids;
    for (const auto& queue : nic.queues)
        tids.push_back(queue.napi_thread.value_or(-1));
    return tids;
}

TEST(NapiThread, AreAttachedInTheOrderOfTheirIds) {
    std::vector<Nic> nics(3);
    for (auto& nic : nics)
        nic.queues = {{Direction::rx, 0}, {Direction::rx, 1}, {Direction::tx, 0}};
    nics[0].name = "veth0";
    nics[1].name = "veth1";
    nics[2].name = "veth2";
    nics[0].threaded_napi = nics[1].threaded_napi = true;
    // Threads with lower numbers have higher ids: the id counts.
    const std::vector<NamedThread> threads = {{50, "napi/veth0-8195"},
                                              {51, "napi/veth0-8194"},
                                              {52, "napi/veth1-9000"},
                                              {53, "napi/veth2-9001"},
                                              {54, "napi/veth2-9002"}};
    attach_napi_threads(nics, threads);
    EXPECT_EQ(threads_of(nics[0]), (std::vector<int>{51, 50, -1}));
    EXPECT_EQ(threads_of(nics[1]),
              (std::vector<int>{-1, -1, -1})); // one thread for two queues: which one is not known
    EXPECT_EQ(threads_of(nics[2]), (std::vector<int>{-1, -1, -1})); // not threaded: names of old threads
}

TEST(NapiThread, IdsAreExactWhereKnown) {
    std::vector<Nic> nics(1);
    nics[0].name = "eth0";
    nics[0].threaded_napi = true;
    nics[0].queues = {{Direction::rx, 0}, {Direction::tx, 0}};
    nics[0].queues[0].napi_id = 8200;
    nics[0].queues[1].napi_id = 8199;
    const std::vector<NamedThread> threads = {{70, "napi/eth0-8199"}, {71, "napi/eth0-8200"}};
    attach_napi_threads(nics, threads);
    EXPECT_EQ(threads_of(nics[0]), (std::vector<int>{71, 70}));
}

} // namespace
} // namespace affinityd::netdev
