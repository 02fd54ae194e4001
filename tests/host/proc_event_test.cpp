// SPDX-License-Identifier: Apache-2.0
#include "event_bytes.hpp"
#include "host/proc_connector.hpp"

#include <random>

#include <gtest/gtest.h>

namespace affinityd::host {
namespace {

using namespace test;
using Kind = ProcEvent::Kind;

TEST(ProcEvent, Fork) {
    const auto event =
        parse_proc_event(EventBytes{.what = event_fork, .time = 77}.numbers({10, 11, 20, 21}).build());
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, Kind::fork);
    EXPECT_EQ(event->tid, 20);
    EXPECT_EQ(event->pid, 21);
    EXPECT_EQ(event->parent_pid, 11);
    EXPECT_TRUE(event->is_thread());
}

TEST(ProcEvent, Exec) {
    const auto event = parse_proc_event(EventBytes{.what = event_exec}.numbers({20, 20}).build());
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, Kind::exec);
    EXPECT_EQ(event->pid, 20);
    EXPECT_FALSE(event->is_thread());
}

TEST(ProcEvent, CommWithAndWithoutRoomForTheNul) {
    auto event = parse_proc_event(EventBytes{.what = event_comm}.numbers({22, 20}).text("a) b\n").build());
    ASSERT_TRUE(event);
    EXPECT_EQ(event->comm(), "a) b\n");
    EXPECT_EQ(event->tid, 22);
    event =
        parse_proc_event(EventBytes{.what = event_comm}.numbers({22, 20}).text("0123456789abcdef").build());
    ASSERT_TRUE(event);
    EXPECT_EQ(event->comm(), "0123456789abcdef");
}

TEST(ProcEvent, Exit) {
    const auto event =
        parse_proc_event(EventBytes{.what = event_exit}.numbers({22, 20, 0, 17, 5, 4}).build());
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, Kind::exit);
    EXPECT_EQ(event->tid, 22);
    EXPECT_EQ(event->pid, 20);
    EXPECT_EQ(event->parent_pid, 4);
}

TEST(ProcEvent, AnotherUserOrGroup) {
    for (const std::uint32_t what : {std::uint32_t{event_uid}, std::uint32_t{0x40}}) {
        const auto event = parse_proc_event(EventBytes{.what = what}.numbers({22, 20, 33, 33}).build());
        ASSERT_TRUE(event);
        EXPECT_EQ(event->kind, Kind::ids);
        EXPECT_EQ(event->tid, 22);
        EXPECT_EQ(event->pid, 20);
    }
}

TEST(ProcEvent, OtherMessagesGiveNothing) {
    EXPECT_FALSE(parse_proc_event(EventBytes{.what = 0x80}.numbers({20, 20}).build())); // sid
    EXPECT_FALSE(parse_proc_event(EventBytes{.what = 0}.numbers({0}).build()));
    EXPECT_FALSE(parse_proc_event(EventBytes{.what = 3}.numbers({20, 20}).build()));
    EXPECT_FALSE(parse_proc_event(EventBytes{.index = 2, .what = event_exec}.numbers({20, 20}).build()));
    EXPECT_FALSE(parse_proc_event(EventBytes{.value = 2, .what = event_exec}.numbers({20, 20}).build()));
    EXPECT_FALSE(parse_proc_event(EventBytes{.what = event_exec}.numbers({0, 0}).build()))
        << "no number of a task";
    EXPECT_FALSE(parse_proc_event(EventBytes{.what = event_exec}.numbers({0xffffffff, 5}).build()));
}

TEST(ProcEvent, EveryCutIsNoticed) {
    const auto whole = EventBytes{.what = event_comm}.numbers({22, 20}).text("name").build();
    ASSERT_TRUE(parse_proc_event(whole));
    for (std::size_t length = 0; length < whole.size(); ++length) {
        const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_FALSE(parse_proc_event(cut)) << length;
        EXPECT_FALSE(parse_proc_ack(cut)) << length;
    }
}

TEST(ProcEvent, LyingLengthsAreNoticed) {
    const auto whole = EventBytes{.what = event_exec}.numbers({20, 20}).build();
    for (const std::uint32_t length : {0U, 15U, 16U, 35U, 77U, 0xffffffffU}) {
        auto bytes = whole;
        std::memcpy(bytes.data(), &length, sizeof length); // nlmsg_len
        EXPECT_FALSE(parse_proc_event(bytes)) << length;
    }
    for (const std::uint16_t length :
         {std::uint16_t{0}, std::uint16_t{23}, std::uint16_t{41}, std::uint16_t{65535}}) {
        auto bytes = whole;
        std::memcpy(bytes.data() + 32, &length, sizeof length); // cn_msg.len
        EXPECT_FALSE(parse_proc_event(bytes)) << length;
    }
}

TEST(ProcEvent, RandomBytesNeverCrash) {
    std::mt19937 random(1);
    auto bytes = EventBytes{.what = event_comm}.numbers({22, 20}).text("name").build();
    const auto whole = bytes;
    for (int round = 0; round < 20000; ++round) {
        bytes = whole;
        for (int i = 0; i < 4; ++i)
            bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        bytes.resize(random() % (bytes.size() + 1));
        const auto event = parse_proc_event(bytes);
        EXPECT_TRUE(!event || event->pid > 0);
        static_cast<void>(parse_proc_ack(bytes));
    }
}

TEST(ProcAck, SaysWhatItAnswers) {
    const auto ack = parse_proc_ack(EventBytes{.ack = 42, .what = 0}.numbers({1}).build());
    ASSERT_TRUE(ack);
    EXPECT_EQ(ack->number, 42U);
    EXPECT_EQ(ack->error, 1U);
    EXPECT_FALSE(parse_proc_ack(EventBytes{.what = event_exec}.numbers({20, 20}).build()));
}

} // namespace
} // namespace affinityd::host
