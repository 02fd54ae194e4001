// SPDX-License-Identifier: Apache-2.0
#include "control/joins.hpp"
#include "fuzz/join_seeds.hpp"

#include <cerrno>
#include <cstring>
#include <functional>

#include <gtest/gtest.h>

namespace affinityd::control {
namespace {

using Wish = core::JoinRequest::Wish;

affinityd_join_request request(std::uint16_t wish = AFFINITYD_WISH_JOIN) {
    affinityd_join_request raw{};
    raw.magic = AFFINITYD_JOIN_MAGIC;
    raw.version = AFFINITYD_JOIN_VERSION;
    raw.wish = wish;
    raw.pid = 10;
    raw.tid = 11;
    raw.cpu = -1;
    return raw;
}

std::expected<core::JoinRequest, int> parse(const affinityd_join_request& raw) {
    return parse_join(std::as_bytes(std::span(&raw, 1)));
}

int fault_of(std::uint16_t wish, const std::function<void(affinityd_join_request&)>& spoil) {
    auto raw = request(wish);
    if (wish == AFFINITYD_WISH_JOIN) std::strcpy(raw.slot, "io");
    if (wish == AFFINITYD_WISH_SERVE) raw.cpu = 3;
    EXPECT_TRUE(parse(raw));
    spoil(raw);
    const auto parsed = parse(raw);
    return parsed ? 0 : parsed.error();
}

TEST(JoinMessage, ThePacketsHaveTheSizesOfTheirVersion) {
    EXPECT_EQ(sizeof(affinityd_join_request), 64U);
    EXPECT_EQ(sizeof(affinityd_join_reply), 256U);
}

TEST(JoinMessage, SaysWhoWantsWhat) {
    auto raw = request();
    std::strcpy(raw.slot, "io");
    const auto join = parse(raw);
    ASSERT_TRUE(join);
    EXPECT_EQ(join->wish, Wish::join);
    EXPECT_EQ(join->slot, "io");
    EXPECT_EQ(join->own_pid, 10);
    EXPECT_EQ(join->tid, 11);
    EXPECT_EQ(join->pid, 0) << "that is not for the message to say";
    raw = request(AFFINITYD_WISH_SERVE);
    raw.cpu = 8191;
    const auto serve = parse(raw);
    ASSERT_TRUE(serve);
    EXPECT_EQ(serve->wish, Wish::serve);
    EXPECT_EQ(serve->cpu, 8191U);
    EXPECT_EQ(parse(request(AFFINITYD_WISH_LEAVE))->wish, Wish::leave);
    EXPECT_EQ(parse(request(AFFINITYD_WISH_WHERE))->wish, Wish::where);
    raw = request();
    std::memset(raw.slot, 'a', 31);
    EXPECT_EQ(parse(raw)->slot, std::string(31, 'a'));
}

TEST(JoinMessage, WhatMakesNoSenseIsRefused) {
    using Raw = affinityd_join_request;
    for (const auto wish :
         {AFFINITYD_WISH_JOIN, AFFINITYD_WISH_SERVE, AFFINITYD_WISH_LEAVE, AFFINITYD_WISH_WHERE}) {
        EXPECT_EQ(fault_of(wish, [](Raw& raw) { raw.magic ^= 1; }), -EBADMSG);
        EXPECT_EQ(fault_of(wish, [](Raw& raw) { raw.version = 2; }), -EPROTONOSUPPORT);
        for (const std::uint16_t unknown : {0, 5, 0xffff})
            EXPECT_EQ(fault_of(wish, [=](Raw& raw) { raw.wish = unknown; }), -ENOSYS);
        for (const int number : {0, -1, -2'147'483'647 - 1}) {
            EXPECT_EQ(fault_of(wish, [=](Raw& raw) { raw.pid = number; }), -EINVAL);
            EXPECT_EQ(fault_of(wish, [=](Raw& raw) { raw.tid = number; }), -EINVAL);
        }
        EXPECT_EQ(fault_of(wish, [](Raw& raw) { raw.rest[2] = 1; }), -EINVAL);
        EXPECT_EQ(fault_of(wish, [](Raw& raw) { raw.slot[31] = 'x'; }), -EINVAL)
            << "behind the end of the text";
        EXPECT_EQ(fault_of(wish, [](Raw& raw) { std::memset(raw.slot, 'a', 32); }), -EINVAL) << "no end";
    }
    EXPECT_EQ(fault_of(AFFINITYD_WISH_JOIN, [](Raw& raw) { raw.slot[0] = raw.slot[1] = '\0'; }), -EINVAL);
    EXPECT_EQ(fault_of(AFFINITYD_WISH_JOIN, [](Raw& raw) { raw.slot[0] = '\n'; }), -EINVAL);
    EXPECT_EQ(fault_of(AFFINITYD_WISH_JOIN, [](Raw& raw) { raw.cpu = 0; }), -EINVAL);
    EXPECT_EQ(fault_of(AFFINITYD_WISH_SERVE, [](Raw& raw) { raw.cpu = -2; }), -EINVAL);
    EXPECT_EQ(fault_of(AFFINITYD_WISH_LEAVE, [](Raw& raw) { raw.slot[0] = 'x'; }), -EINVAL);
}

TEST(JoinMessage, AnotherSizeIsNoRequest) {
    const std::array<std::byte, 200> bytes{};
    for (std::size_t size = 0; size <= bytes.size(); ++size)
        EXPECT_FALSE(parse_join(std::span(bytes).first(size)));
}

TEST(JoinMessage, SeedsOfTheFuzzerAreTakenOrRefusedAsTheySay) {
    for (const auto& seed : fuzz::join_seeds()) {
        const auto parsed = parse_join(seed.bytes);
        EXPECT_EQ(parsed ? 0 : parsed.error(), seed.fault) << seed.what;
        fuzz::check_join(seed.bytes);
    }
}

TEST(JoinMessage, TheAnswerFitsWhateverItsTexts) {
    const auto reply = reply_to(
        {.outcome = core::JoinOutcome::done, .policy = std::string(300, 'p'), .slot = std::string(99, 's')});
    EXPECT_EQ(reply.status, 1);
    EXPECT_EQ(reply.flags, AFFINITYD_JOINED);
    EXPECT_EQ(std::string(reply.policy), std::string(207, 'p'));
    EXPECT_EQ(std::string(reply.slot), std::string(31, 's'));
    EXPECT_EQ(reply_to({.outcome = core::JoinOutcome::not_allowed}).status, -EACCES);
    EXPECT_EQ(reply_to({.outcome = core::JoinOutcome::no_daemon}).status, 0);
}

} // namespace
} // namespace affinityd::control
