// SPDX-License-Identifier: Apache-2.0
// Workers with listeners of their own: each lane where packets arrive has one.
#include "planner/steering.hpp"
#include "planner/worker_lanes.hpp"
#include "world.hpp"

#include <map>
#include <optional>
#include <vector>

namespace affinityd::planner {
namespace {

/// servers_of() with these workers of each port.
std::vector<std::vector<TaskId>> servers_on(const std::map<std::uint16_t, std::vector<TaskId>>& of_ports) {
    std::vector<ListenerTarget> targets;
    std::vector<TaskId> workers;
    for (const auto& [port, those] : of_ports)
        for (const auto& worker : those) {
            targets.push_back({{},
                               {},
                               "web",
                               static_cast<int>(workers.size()),
                               {static_cast<std::uint8_t>(port), static_cast<std::uint8_t>(port >> 8)}});
            workers.push_back(worker);
        }
    return servers_of(targets, [&](const ListenerTarget& one) {
        return std::optional(workers[static_cast<std::size_t>(one.thread)]);
    });
}

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
        for (const auto& lane : policy().nics[0].lanes)
            if (lane.cpus.first() != seat.now) world_.assignments.move(other, seat.table, seat.now, lane);
    ASSERT_EQ(arrival(one), arrival(other));
    EXPECT_EQ(spread({one, other}).size(), 1U);
    EXPECT_NE(arrival(one), arrival(other));
    EXPECT_TRUE(arrival(master));
    EXPECT_TRUE(arrival(placeholder)) << "nobody else moves";
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
TEST_F(WorkerLanes, EachServerOfAPolicyHasAWorkerOnEachLane) {
    const auto first = settle(1), second = settle(2), third = settle(3), fourth = settle(4);
    const auto bring_to = [&](const TaskId& worker, const Slot& lane) {
        const auto seat = world_.assignments.seats().find(worker)->second;
        if (seat.now != lane.cpus.first()) world_.assignments.move(worker, seat.table, seat.now, lane);
    };
    const auto& lanes = policy().nics[0].lanes;
    for (const auto& worker : {first, second})
        bring_to(worker, lanes[0]);
    for (const auto& worker : {third, fourth})
        bring_to(worker, lanes[1]);
    ASSERT_TRUE(spread({first, second, third, fourth}).empty()) << "taken together, they lack none";
    const auto servers =
        servers_on({{80, {first, second}}, {443, {second, first}}, {8080, {third}}, {8443, {third, fourth}}});
    ASSERT_EQ(servers.size(), 2U) << "who has a port in common is one server";
    for (const auto& workers : servers)
        EXPECT_EQ(spread(workers).size(), 1U);
    EXPECT_NE(arrival(first), arrival(second));
    EXPECT_NE(arrival(third), arrival(fourth));
}

TEST(Servers, ThoseThatAPortJoinsAreOne) {
    const TaskId a{1, 10}, b{2, 20}, c{3, 30}, d{4, 40};
    EXPECT_TRUE(servers_on({}).empty());
    EXPECT_EQ(servers_on({{80, {a, b}}, {81, {c}}, {82, {d}}, {83, {b, c}}}),
              (std::vector<std::vector<TaskId>>{{a, b, c}, {d}}));
}

TEST(Servers, OfOnePortAndTwoAddressesAreTwo) {
    const auto target = [](int process, std::vector<std::uint8_t> address) {
        const auto cookie = 100U + static_cast<unsigned>(process);
        return ListenerTarget{{cookie, process, 1, 6, 80}, CpuSet{0}, "web", process, std::move(address)};
    };
    const std::vector targets{target(1, {10, 0, 0, 1}), target(2, {10, 0, 0, 1}), target(3, {10, 0, 0, 2}),
                              target(4, {10, 0, 0, 2}), target(5, {10, 0, 0, 2})};
    const auto worker = [](const ListenerTarget& one) -> std::optional<TaskId> {
        if (one.thread == 5) return std::nullopt; // it has ended
        return TaskId{one.thread, 10};
    };
    EXPECT_EQ(servers_of(targets, worker),
              (std::vector<std::vector<TaskId>>{{{1, 10}, {2, 10}}, {{3, 10}, {4, 10}}}));
}

} // namespace
} // namespace affinityd::planner
