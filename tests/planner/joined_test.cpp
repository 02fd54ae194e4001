// SPDX-License-Identifier: Apache-2.0
#include "planner/arrivals.hpp"
#include "planner/matcher.hpp"
#include "world.hpp"

namespace affinityd::planner {
namespace {

using test::thread;
using test::World;

constexpr auto with_slots = "match: {comm: a}\nallow_join: [io, spare, arrivals]\nthreads:\n"
                            "  - {slot: io, cpus: \"0\", bind: cpu}\n"
                            "  - {slot: spare, leave: true}\n"
                            "  - {slot: shut, cpus: \"7\", bind: cpu}\n"
                            "  - {name: \"w*\", cpus: \"1-4\", spread: cpu, bind: cpu}\n"
                            "  - {name: \"*\", cpus: \"5\", bind: cpu}\n";

class JoinedTest : public testing::Test {
  protected:
    World world_{{with_slots}, test::without_smt(8)};
    [[nodiscard]] std::optional<std::size_t> rule(const char* name, const Joined* joined) const {
        return rule_of(world_.set.policies[0], name, 1, joined);
    }
    ThreadPlan plan(const inventory::Thread& task, const Joined* joined, bool is_settling = false) {
        return plan_thread(world_.planning(), {.id = task.id, .policy = 0, .is_settling = is_settling},
                           {.thread = task, .joined = joined});
    }
};

TEST_F(JoinedTest, WhatAThreadJoinsCountsMoreThanItsName) {
    const Joined io{"p0", "io"}, spare{"p0", "spare"};
    EXPECT_EQ(rule("worker", nullptr), 3U);
    EXPECT_EQ(rule("worker", &io), 0U);
    EXPECT_EQ(rule("worker", &spare), 1U);
    EXPECT_EQ(plan(thread(1, "worker"), &io).target->mask, CpuSet{0});
    EXPECT_EQ(plan(thread(1, "worker"), &spare).untouched, NoPlace::leave);
}

TEST_F(JoinedTest, ARuleForJoinedThreadsIsForNoOthers) {
    EXPECT_EQ(rule("io", nullptr), 4U);
    EXPECT_EQ(rule("", nullptr), 4U);
}

TEST_F(JoinedTest, ThePolicyDecidesWhatIsInForce) {
    const Joined shut{"p0", "shut"}, unknown{"p0", "nowhere"}, of_another{"p1", "io"}, nothing{"p0", ""};
    for (const auto* joined : {&shut, &unknown, &of_another, &nothing}) {
        EXPECT_FALSE(is_in_force(world_.set.policies[0], joined)) << joined->slot;
        EXPECT_EQ(rule("worker", joined), 3U) << joined->slot;
    }
    const Joined serves{"p0", "", true};
    EXPECT_TRUE(is_in_force(world_.set.policies[0], &serves));
    EXPECT_EQ(rule("worker", &serves), 3U);
}

TEST_F(JoinedTest, WhoHasJoinedDoesNotSettle) {
    const Joined io{"p0", "io"}, shut{"p0", "shut"};
    EXPECT_EQ(plan(thread(1, "worker"), nullptr, true).target->distribution.kind,
              DistributionId::Kind::whole);
    EXPECT_EQ(plan(thread(1, "worker"), &shut, true).target->distribution.kind, DistributionId::Kind::whole);
    EXPECT_EQ(plan(thread(1, "worker"), &io, true).target->mask, CpuSet{0});
}

TEST_F(JoinedTest, ThreadsOfASlotAreDealtOutOverIt) {
    world_.reload(
        {"match: {comm: a}\nallow_join: io\nthreads: [{slot: io, cpus: \"2-5\", spread: cpu, bind: cpu}]\n"});
    const Joined io{"p0", "io"};
    CpuSet used;
    for (int tid = 1; tid <= 4; ++tid)
        used |= plan(thread(tid, "worker"), &io).target->mask;
    EXPECT_EQ(used.to_list(), "2-5");
}

TEST_F(JoinedTest, AThreadGetsTheSlotThatHasItsCpu) {
    auto task = thread(1, "worker");
    const auto target = *plan(task, nullptr).target;
    const auto table = *world_.assignments.number(target.distribution);
    const unsigned now = target.mask.first(), other = now == 3 ? 2 : 3;
    const auto with = [&](unsigned cpu) {
        return slot_with_cpu(world_.placements.policies[0], world_.placements, world_.assignments, task.id,
                             table, cpu);
    };
    EXPECT_EQ(with(now).state, AtArrivals::here);
    EXPECT_EQ(with(0).state, AtArrivals::no_lane) << "a CPU of its policy, but not of its slots";
    EXPECT_EQ(with(4711).state, AtArrivals::no_lane);
    const auto found = with(other);
    ASSERT_EQ(found.state, AtArrivals::moves);
    world_.assignments.move(task.id, found.move->table, found.move->from, found.move->to);
    EXPECT_EQ(plan(task, nullptr).target->mask, CpuSet{other});
    EXPECT_EQ(with(other).state, AtArrivals::here);
}

TEST_F(JoinedTest, NotAllCanBeOnOneCpu) {
    unsigned there = 0, refused = 0;
    for (int tid = 1; tid <= 12; ++tid) {
        auto task = thread(tid, "worker");
        const auto target = *plan(task, nullptr).target;
        const auto found = slot_with_cpu(world_.placements.policies[0], world_.placements, world_.assignments,
                                         task.id, *world_.assignments.number(target.distribution), 3);
        if (found.move) world_.assignments.move(task.id, found.move->table, found.move->from, found.move->to);
        ++(found.state == AtArrivals::crowded ? refused : there);
    }
    EXPECT_GE(there, 3U);
    EXPECT_GE(refused, 3U);
}

} // namespace
} // namespace affinityd::planner
