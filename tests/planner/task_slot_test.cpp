// SPDX-License-Identifier: Apache-2.0
#include "planner/arrivals.hpp"
#include "world.hpp"

namespace affinityd::planner {
namespace {

using test::thread;
using test::World;

constexpr auto each_connection_a_process =
    "match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\nbind: core\nsteer: tasks\n";

/// Eight cores without SMT, an interface of four queues, and processes that each serve one connection.
class TaskSlotTest : public testing::Test {
  protected:
    explicit TaskSlotTest(const std::string& more = "", unsigned queues = 4) {
        auto machine = test::without_smt(8);
        test::add_nic(machine, "eth0", 0, queues, 30);
        world_.emplace(std::vector<std::string>{each_connection_a_process + more}, std::move(machine),
                       NicUsage{{"p0", {{{"eth0"}, queues}}}});
        for (const auto& slot : world_->placements.policies[0].nics[0].rows[0].slots)
            lanes_.push_back(slot.cpus.first());
    }
    /// The lane of a process; places it first if it is new.
    unsigned lane_of(int pid) {
        auto one = thread(pid, "a");
        world_->settle(one, 0, &nics_);
        return one.allowed.first();
    }
    TaskSlot slot(int pid, const Arrivals& arrivals) {
        return slot_at_arrivals(world_->placements.policies[0], world_->placements, world_->assignments,
                                thread(pid, "a").id, arrivals);
    }
    unsigned other_than(unsigned lane) {
        return *std::ranges::find_if(lanes_, [&](unsigned one) { return one != lane; });
    }
    /// Sets the load of the process from now on.
    void weigh(int pid, Weight weight) {
        const auto id = thread(pid, "a").id;
        for (int i = 0; i < 50; ++i) // it counts with its average
            world_->assignments.weigh(world_->assignments.seats().find(id)->second.table, id, weight);
    }
    std::optional<World> world_;
    std::vector<unsigned> lanes_;
    std::vector<std::string> nics_{"eth0"};
};

TEST_F(TaskSlotTest, ATaskGoesWhereItsPacketsArrive) {
    for (int pid = 1; pid <= 8; ++pid)
        lane_of(pid);
    const auto before = lane_of(1), to = other_than(before);
    const auto found = slot(1, {{to, 9}, {before, 1}});
    ASSERT_EQ(found.state, AtArrivals::moves);
    world_->assignments.move(thread(1, "a").id, found.move->table, found.move->from, found.move->to);
    EXPECT_EQ(lane_of(1), to);
    EXPECT_EQ(slot(1, {{to, 9}, {before, 1}}).state, AtArrivals::here);
    EXPECT_FALSE(slot(1, {{to, 9}, {before, 1}}).move);
}

TEST_F(TaskSlotTest, AFewPacketsAreNoReason) {
    const auto to = other_than(lane_of(1));
    EXPECT_EQ(slot(1, {}).state, AtArrivals::unknown);
    EXPECT_EQ(slot(1, {{to, 1}}).state, AtArrivals::unknown);
    EXPECT_EQ(slot(1, {{to, 2}}).state, AtArrivals::moves);
}

TEST_F(TaskSlotTest, TwoThirdsAreNoClearMajority) {
    lane_of(1);
    EXPECT_EQ(slot(1, {{lanes_[0], 5}, {lanes_[1], 5}}).state, AtArrivals::mixed);
    const auto before = lane_of(1), to = other_than(before);
    EXPECT_EQ(slot(1, {{to, 6}, {before, 3}}).state, AtArrivals::mixed);
    EXPECT_EQ(slot(1, {{to, 7}, {before, 3}}).state, AtArrivals::moves);
}

TEST_F(TaskSlotTest, WhereThePolicyHasNoLaneNoTaskGoes) {
    lane_of(1);
    for (unsigned cpu = 0; cpu < 8; ++cpu) {
        if (std::ranges::count(lanes_, cpu) > 0) continue;
        EXPECT_EQ(slot(1, {{cpu, 50}}).state, AtArrivals::no_lane) << cpu;
        EXPECT_EQ(slot(1, {{cpu, 5}, {lanes_[0], 4}}).state, AtArrivals::mixed) << cpu;
    }
    EXPECT_EQ(slot(99, {{lanes_[0], 50}}).state, AtArrivals::no_lane) << "it has no slot";
    EXPECT_EQ(slot(1, {{4711, 50}}).state, AtArrivals::no_lane) << "no CPU of this machine";
}

TEST_F(TaskSlotTest, ALaneTakesNoMoreThanTwiceItsShare) {
    for (int pid = 1; pid <= 16; ++pid)
        lane_of(pid);
    // All of the packets arrive on one lane: half of the processes follow them there, and then no more.
    int there = 0;
    for (int pid = 1; pid <= 16; ++pid) {
        const auto found = slot(pid, {{lanes_[2], 10}});
        if (found.move)
            world_->assignments.move(thread(pid, "a").id, found.move->table, found.move->from,
                                     found.move->to);
        there += lane_of(pid) == lanes_[2] ? 1 : 0;
    }
    EXPECT_GE(there, 8);
    EXPECT_LE(there, 10) << "the work of interrupts counts, too";
    for (int pid = 1; pid <= 16; ++pid)
        EXPECT_EQ(slot(pid, {{lanes_[2], 10}}).state,
                  lane_of(pid) == lanes_[2] ? AtArrivals::here : AtArrivals::crowded);
}

TEST_F(TaskSlotTest, IdleProcessesCrowdNoTask) {
    for (int pid = 1; pid <= 16; ++pid) {
        lane_of(pid);
        weigh(pid, one_cpu / 100);
    }
    for (int pid = 1; pid <= 16; ++pid) {
        const auto found = slot(pid, {{lanes_[2], 10}});
        if (found.move)
            world_->assignments.move(thread(pid, "a").id, found.move->table, found.move->from,
                                     found.move->to);
        EXPECT_EQ(lane_of(pid), lanes_[2]) << pid;
    }
}

TEST_F(TaskSlotTest, WhoMakesItsLaneTooBusyMayBeMovedAway) {
    for (int pid = 1; pid <= 8; ++pid)
        lane_of(pid);
    for (int pid = 1; pid <= 8; ++pid)
        weigh(pid, one_cpu / 100);
    const auto first = lane_of(1);
    for (int pid = 2; pid <= 8; ++pid) {
        const auto found = slot(pid, {{first, 10}});
        if (found.move)
            world_->assignments.move(thread(pid, "a").id, found.move->table, found.move->from,
                                     found.move->to);
        ASSERT_EQ(lane_of(pid), first);
    }
    EXPECT_EQ(slot(2, {{first, 10}}).state, AtArrivals::here);
    for (int pid = 1; pid <= 8; ++pid)
        weigh(pid, one_cpu);
    EXPECT_EQ(slot(2, {{first, 10}}).state, AtArrivals::crowded) << "all eight on one core of four";
}

class OfTwoLanes : public TaskSlotTest {
  protected:
    OfTwoLanes() : TaskSlotTest("", 2) {}
};

TEST_F(OfTwoLanes, OneTakesThreeQuarters) {
    int there = 0;
    for (int pid = 1; pid <= 8; ++pid)
        lane_of(pid);
    for (int pid = 1; pid <= 8; ++pid) {
        const auto found = slot(pid, {{lanes_[0], 10}});
        if (found.move)
            world_->assignments.move(thread(pid, "a").id, found.move->table, found.move->from,
                                     found.move->to);
        there += lane_of(pid) == lanes_[0] ? 1 : 0;
    }
    EXPECT_EQ(there, 6);
}

class WithSeparateInterrupts : public TaskSlotTest {
  protected:
    WithSeparateInterrupts() : TaskSlotTest("separate: true\n", 2) {}
};

TEST_F(WithSeparateInterrupts, TheLaneWhoseInterruptsArriveThereIsMeant) {
    const auto& nic = world_->placements.policies[0].nics[0];
    const auto before = lane_of(1), to = other_than(before);
    std::optional<unsigned> cpu;
    for (const auto& queue : nic.queues[0])
        if (queue.seat.contains(to)) cpu = queue.cpu;
    ASSERT_TRUE(cpu);
    ASSERT_NE(*cpu, to);
    const auto found = slot(1, {{*cpu, 10}});
    ASSERT_EQ(found.state, AtArrivals::moves);
    EXPECT_EQ(found.move->to.cpus.first(), to);
}

TEST(TaskSlot, EachStateHasAText) {
    for (const auto state : {AtArrivals::here, AtArrivals::unknown, AtArrivals::mixed, AtArrivals::no_lane,
                             AtArrivals::crowded, AtArrivals::moves})
        EXPECT_FALSE(to_string(state).empty());
}

} // namespace
} // namespace affinityd::planner
