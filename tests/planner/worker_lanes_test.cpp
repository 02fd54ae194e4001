// SPDX-License-Identifier: Apache-2.0
// Workers with listeners of their own: each lane where packets arrive has one.
#include "planner/arrivals.hpp"
#include "world.hpp"

#include <map>
#include <optional>
#include <vector>

namespace affinityd::planner {
namespace {

class WorkerLanes : public testing::Test {
  protected:
    static machine::Machine one_nic() {
        auto machine = test::plain();
        test::add_nic(machine, "eth0", 0, 2, 30);
        return machine;
    }
    /// Places a process; its id.
    TaskId settle(int pid) {
        const std::vector<std::string> nics{"eth0"};
        auto task = test::thread(pid, "a");
        world_.settle(task, 0, &nics);
        return task.id;
    }
    [[nodiscard]] const ResolvedPolicy& policy() const { return world_.placements.policies[0]; }
    [[nodiscard]] std::optional<unsigned> arrival(const TaskId& task) const {
        return arrival_cpu(policy(), world_.assignments, task);
    }
    std::vector<WorkerMove> spread(const std::vector<TaskId>& workers) {
        const auto moves = spread_workers(policy(), world_.placements, world_.assignments, workers);
        for (const auto& move : moves)
            world_.assignments.move(move.worker, move.table, move.from, move.to);
        return moves;
    }
    test::World world_{{"match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\nbind: core\n"},
                       one_nic(),
                       {{"p0", {{{"eth0"}, 2}}}}};
};

TEST_F(WorkerLanes, ALaneThatHasOnlyTheMasterGetsAWorkerOfOneThatHasTwo) {
    const auto master = settle(1), one = settle(2), placeholder = settle(3), other = settle(4);
    // However they were dealt, both workers are brought to one lane first.
    const auto seat = world_.assignments.seats().find(other)->second;
    if (arrival(one) != arrival(other))
        for (const auto& lane : policy().nics[0].rows[0].slots)
            if (lane.cpus.first() != seat.now) world_.assignments.move(other, seat.table, seat.now, lane);
    ASSERT_EQ(arrival(one), arrival(other));
    EXPECT_EQ(spread({one, other}).size(), 1U);
    EXPECT_NE(arrival(one), arrival(other));
    EXPECT_TRUE(arrival(master));
    EXPECT_TRUE(arrival(placeholder)) << "no other moves";
    EXPECT_TRUE(spread({one, other}).empty()) << "it is as it should be";
}

TEST_F(WorkerLanes, FewerOrMoreWorkersThanLanesStayWhereTheyAre) {
    const auto first = settle(1), second = settle(2), third = settle(3);
    EXPECT_TRUE(spread({first}).empty());
    EXPECT_TRUE(spread({first, second, third}).empty()) << "each lane has one at least";
    EXPECT_TRUE(spread({}).empty());
    EXPECT_TRUE(spread({{99, 990}}).empty()) << "it has no place";
}

/// Two nginx, or nginx and HAProxy, under one policy: each of them takes connections from all lanes.
} // namespace
} // namespace affinityd::planner
