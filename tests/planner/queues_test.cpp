// SPDX-License-Identifier: Apache-2.0
// The changes that interrupts, steering maps and flow tables need, and what may put changes off.
#include "planner/arrivals.hpp"
#include "world.hpp"

#include <unordered_set>

namespace affinityd::planner {
namespace {

using machine::Setting;
using test::plain;
using test::thread;
using test::World;
using State = ThreadPlan::State;

const char* const irq_policy = "match: {comm: a}\naffinity: irq\nnics: [eth0]\n";
const char* const full_policy = "match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\nbind: core\n";

/// Puts off the changes of some subjects.
struct PutOff final : BackoffLookup {
    std::unordered_set<Subject> subjects;
    [[nodiscard]] bool is_put_off(const Action& action) const override {
        return subjects.contains(action.subject);
    }
};

/// A NIC of one queue pair, with flow tables of these sizes, that serves two tasks.
machine::Machine with_flows(std::optional<unsigned> machine_entries, unsigned queue_entries) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    machine.flow_entries = machine_entries;
    for (auto& queue : machine.nics.back().queues)
        if (queue.direction == netdev::Direction::rx) queue.flow_count = queue_entries;
    return machine;
}

std::string wanted_flows(const World& world, const Subject& subject) {
    const auto found = std::ranges::find(world.placements.queues, subject, &QueueTarget::subject);
    return found == world.placements.queues.end() ? "not wanted" : found->wanted.to_string();
}

const Subject machine_table = FlowTable{};
const Subject queue_table = FlowTable{"devices/pci0000:00/eth0", 0, "eth0"};

TEST(Queues, QueuesThatAreAsWantedNeedNoChange) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 2, 30);
    World world({irq_policy}, machine);
    EXPECT_EQ(world.plan_queues().size(), 4U) << "two interrupts, two XPS maps; RPS is off already";
    for (const auto& target : world.placements.queues)
        EXPECT_FALSE(plan_queue(world.planning(), target, target.wanted));
}

TEST(Queues, EndsOfPairsOnTheWayToReadersHaveRpsOff) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 2, 30);
    auto& pod = machine.nics.emplace_back();
    pod.name = "pod0";
    pod.master = "br0";
    pod.ifindex = 9;
    pod.queues = {{.direction = netdev::Direction::rx, .index = 0, .steering = CpuSet{1}}};
    NicUsage usage{{"p0", {{{"eth0"}, 2}}}};
    usage.ends["p0"] = {"pod0", "gone"};
    for (const auto& [more, is_off] :
         {std::pair{"", true}, {"rps: all\n", false}, {"steering: false\n", false}}) {
        const World world({full_policy + std::string(more)}, machine, usage);
        const auto found = std::ranges::find(world.placements.queues, "pod0", &QueueTarget::nic);
        ASSERT_EQ(found != world.placements.queues.end(), is_off) << more;
        if (found != world.placements.queues.end()) {
            EXPECT_EQ(found->wanted, Setting(CpuSet()));
        }
    }
}

TEST(Queues, AReaderWhoseInterfaceIsNotKnownHasItsCacheGroup) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 2, 30);
    const auto group = machine.topology.llc_of(0).to_list();
    for (const auto& [text, cpus] : {std::pair{"affinity: full\nbind: core\n", group},
                                     {"affinity: full\nbind: cpu\ntogether: core\n", group},
                                     {"affinity: full\nnics: [eth9]\nbind: core\n", group},
                                     {"affinity: full\nbind: core\ncpus: 0\n", std::string("0")},
                                     {"affinity: process\nbind: cpu\n", std::string("0")}}) {
        World world({"match: {comm: a}\n" + std::string(text)}, machine);
        auto task = thread(1, "a");
        EXPECT_EQ(world.settle(task), cpus) << text;
    }
}

TEST(Queues, AnInterruptThatTheKernelMovedElsewhereIsNotAskedForAgain) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    World world({irq_policy}, machine);
    const auto& target = world.placements.queues.front();
    const auto action = plan_queue(world.planning(), target, CpuSet{5});
    ASSERT_TRUE(action);
    world.book.apply(*action, CpuSet{3});
    EXPECT_FALSE(plan_queue(world.planning(), target, CpuSet{3})) << "that is all it grants";
    EXPECT_TRUE(plan_queue(world.planning(), target, CpuSet{5})) << "but this is drift";
}

TEST(Queues, FlowTablesAreWantedWhereFewerQueuesThanLanesAreSpread) {
    const World two({full_policy}, with_flows(0, 0), {{"p0", {{{"eth0"}, 2}}}});
    EXPECT_EQ(wanted_flows(two, machine_table), "32768");
    EXPECT_EQ(wanted_flows(two, queue_table), "32768");
    const World one({full_policy}, with_flows(0, 0), {{"p0", {{{"eth0"}, 1}}}});
    EXPECT_EQ(wanted_flows(one, machine_table), "not wanted") << "as many queues as lanes: no RPS, so no RFS";
    const World none({full_policy}, with_flows(std::nullopt, 0), {{"p0", {{{"eth0"}, 2}}}});
    EXPECT_EQ(wanted_flows(none, queue_table), "not wanted") << "the kernel has none";
}

TEST(Queues, WhereFlowsAreSteeredFlowTablesAreWantedInAnyCase) {
    const auto flows = std::string(full_policy) + "steer: flows\n";
    const World one({flows}, with_flows(0, 0), {{"p0", {{{"eth0"}, 1}}}});
    EXPECT_EQ(wanted_flows(one, machine_table), "32768");
    EXPECT_EQ(wanted_flows(one, queue_table), "32768");
    for (const auto& target : one.placements.queues) {
        const auto* map = std::get_if<SteeringMask>(&target.subject);
        if (map == nullptr || map->direction != netdev::Direction::rx) continue;
        EXPECT_TRUE(target.wanted.cpus().empty()) << "a flow without a reader stays where it arrives";
    }
    const World none({flows}, with_flows(std::nullopt, 0), {{"p0", {{{"eth0"}, 1}}}});
    EXPECT_EQ(wanted_flows(none, queue_table), "not wanted") << "the kernel has none";
    EXPECT_TRUE(lacks_flow_tables(none.placements.policies[0], none.placements));
    EXPECT_FALSE(lacks_flow_tables(one.placements.policies[0], one.placements));
    const World left({flows + "steering: false\n"}, with_flows(0, 0), {{"p0", {{{"eth0"}, 1}}}});
    EXPECT_EQ(wanted_flows(left, queue_table), "not wanted");
}

TEST(Queues, FlowTablesThatAreTooSmallAreEnlarged) {
    World world({full_policy}, with_flows(0, 4096), {{"p0", {{{"eth0"}, 2}}}});
    std::map<std::string, std::string> changes;
    for (const auto& action : world.plan_queues())
        if (std::holds_alternative<FlowTable>(action.subject))
            changes[to_string(action.subject)] = action.from.to_string() + " to " + action.to.to_string();
    const std::map<std::string, std::string> expected{{"machine flow-entries", "0 to 32768"},
                                                      {"eth0 rx-0-flows", "4096 to 32768"}};
    EXPECT_EQ(changes, expected);
}

TEST(Queues, FlowTablesThatAreLargerAlreadyStay) {
    World world({full_policy}, with_flows(65536, 1U << 20), {{"p0", {{{"eth0"}, 2}}}});
    EXPECT_EQ(wanted_flows(world, machine_table), "65536");
    EXPECT_NE(wanted_flows(world, queue_table), "not wanted");
    for (const auto& action : world.plan_queues())
        EXPECT_FALSE(std::holds_alternative<FlowTable>(action.subject))
            << to_string(action.subject) << " to " << action.to.to_string();
}

TEST(Queues, TwoLinesOfOneLabelAreTwoSubjectsWithUndoRecordsOfTheirOwn) {
    auto machine = plain();
    netdev::Nic nic;
    nic.name = "eth0"; // bcmgenet: the default ring and the priority rings
    nic.driver = "bcmgenet";
    nic.device = "devices/platform/scb/fd580000.ethernet";
    machine.nics.push_back(nic);
    for (const unsigned number : {31U, 32U}) {
        irq::Irq line;
        line.number = number;
        line.actions = {"eth0"};
        line.requested = CpuSet{number - 28}; // 3 and 4
        machine.irqs.irqs.push_back(line);
    }
    link_vectors(machine);
    World world({irq_policy}, machine);
    const auto actions = world.plan_queues();
    ASSERT_EQ(actions.size(), 2U);
    EXPECT_NE(actions[0].subject, actions[1].subject);
    for (const auto& action : actions)
        world.book.apply(action, action.to);
    ASSERT_EQ(world.book.records.size(), 2U);
    for (const auto& action : actions)
        EXPECT_EQ(world.book.find(action.subject)->original, action.from) << to_string(action.subject);
    EXPECT_NE(actions[0].from, actions[1].from);
}

TEST(Queues, AThreadThatDoesAQueuesWorkFollowsTheInterrupt) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 1, 2, 30);
    machine.irqs.irqs.front().threads = {77};
    machine.nics.front().queues[1].napi_thread = 78;
    World world({irq_policy}, machine);
    for (const auto& [tid, cpus] : {std::pair{77, "4"}, std::pair{78, "6"}}) {
        auto worker = thread(tid, "worker");
        EXPECT_EQ(world.plan(worker, std::nullopt).state, State::unwanted)
            << "another process has that number now";
        worker.flags = inventory::pf_kthread;
        EXPECT_EQ(world.settle(worker, std::nullopt), cpus);
    }
}

TEST(Backoff, AChangeThatIsPutOffHasNoActionAndComesAfterwards) {
    World world({"match: {comm: a}\ncpus: \"1\"\nbind: set\n"}, plain());
    const auto task = thread(1, "a");
    PutOff backoff;
    backoff.subjects.insert(TaskMask{task.id, 0, {}});
    const auto plan = plan_thread(world.planning(&backoff), {.id = task.id, .policy = 0}, {task});
    EXPECT_EQ(plan.state, State::put_off);
    EXPECT_FALSE(plan.action);
    ASSERT_TRUE(plan.target) << "where it belongs is known";
    EXPECT_EQ(plan.target->mask, CpuSet{1});
    backoff.subjects.clear();
    EXPECT_EQ(plan_thread(world.planning(&backoff), {.id = task.id, .policy = 0}, {task}).state,
              State::changes);
}

TEST(Backoff, ATaskInPlaceIsNotPutOff) {
    World world({"match: {comm: a}\ncpus: \"1\"\nbind: set\n"}, plain());
    auto task = thread(1, "a");
    world.settle(task);
    PutOff backoff;
    backoff.subjects.insert(TaskMask{task.id, 0, {}});
    EXPECT_EQ(plan_thread(world.planning(&backoff), {.id = task.id, .policy = 0}, {task}).state,
              State::in_place);
}

TEST(Backoff, OnlyTheQueueThatIsPutOffStays) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 2, 30);
    World world({irq_policy}, machine);
    const auto all = world.plan_queues();
    PutOff backoff;
    backoff.subjects.insert(all.front().subject);
    const auto rest = world.plan_queues(&backoff);
    EXPECT_EQ(rest.size() + 1, all.size());
    EXPECT_TRUE(std::ranges::none_of(
        rest, [&](const Action& action) { return action.subject == all.front().subject; }));
}

} // namespace
} // namespace affinityd::planner
