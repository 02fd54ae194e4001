// SPDX-License-Identifier: Apache-2.0
#include "machines.hpp"
#include "planner/flow_counts.hpp"
#include "planner/near.hpp"
#include "planner/plan.hpp"

#include <algorithm>

namespace affinityd::planner {
namespace {

using test::policies;
using test::thread;
using State = ThreadPlan::State;

/// Remembers what was applied, as the journal does.
struct Book final : Memory {
    std::map<std::string, Held> held;
    [[nodiscard]] const Held* find(const Subject& subject) const override {
        const auto found = held.find(to_string(subject));
        return found == held.end() ? nullptr : &found->second;
    }
    void apply(const Action& action, const CpuSet& granted) {
        const auto [at, is_new] = held.try_emplace(to_string(action.subject));
        if (is_new) at->second.original = action.from;
        at->second.asked = action.to;
        at->second.granted = granted;
        if (action.restore) held.erase(at);
    }
};

/// A world with one set of policies and the tasks in it.
struct Fixture {
    policy::PolicySet set;
    Machine machine;
    Placements placements;
    Assignments seats;
    Book book;

    Fixture(const std::vector<std::string>& texts, Machine hardware, const Serving& serving = {})
        : set(policies(texts)), machine(std::move(hardware)), placements(compile(set, machine, serving)) {}

    ThreadPlan plan(const inventory::Thread& task, std::optional<std::size_t> policy = 0,
                    const std::vector<std::string>* nics = nullptr) {
        return plan_thread(placements, seats, policy, {task.id, &task, 0, nics}, book);
    }
    /// Plans, applies to the task, and says where it is then.
    std::string settle(inventory::Thread& task, std::optional<std::size_t> policy = 0,
                       const std::vector<std::string>* nics = nullptr) {
        const auto plan = this->plan(task, policy, nics);
        if (plan.action) {
            book.apply(*plan.action, plan.action->to);
            task.allowed = plan.action->to;
        }
        return task.allowed.to_list();
    }
};

Machine plain() { return {test::two_sockets(), {}, {}}; }

TEST(Plan, ASecondLookAtAnUnchangedTaskGivesNothing) {
    Fixture world({"match: {comm: a}\ncpus: \"2-3\"\nbind: set\n"}, plain());
    auto task = thread(1, "a");
    EXPECT_EQ(world.settle(task), "2-3");
    const auto again = world.plan(task);
    EXPECT_EQ(again.state, State::in_place);
    EXPECT_FALSE(again.action);
}

TEST(Plan, ThreadRulesByNameAndTheOriginalWhenThePolicyLetsGo) {
    Fixture world({"match: {comm: a}\ncpus: \"0-3\"\nbind: set\nthreads:\n  - {name: \"io*\", cpus: \"7\", "
                   "bind: cpu}\n  - {name: free, leave: true}\n"},
                  plain());
    auto io = thread(2, "io-1", CpuSet{0, 1});
    auto free = thread(3, "free");
    EXPECT_EQ(world.settle(io), "7");
    EXPECT_EQ(world.plan(free).state, State::left_alone);
    const auto gone = world.plan(io, std::nullopt);
    ASSERT_TRUE(gone.action);
    EXPECT_TRUE(gone.action->restore);
    EXPECT_EQ(gone.action->to, (CpuSet{0, 1}));
}

TEST(Plan, WhatACpusetNarrowedIsNotAskedForAgain) {
    Fixture world({"match: {comm: a}\ncpus: \"0-3\"\nbind: set\n"}, plain());
    auto task = thread(1, "a");
    const auto first = world.plan(task);
    ASSERT_TRUE(first.action);
    world.book.apply(*first.action, CpuSet{2, 3});
    task.allowed = CpuSet{2, 3};
    EXPECT_EQ(world.plan(task).state, State::in_place);
    task.allowed = CpuSet::range(0, 7);
    EXPECT_TRUE(world.plan(task).action) << "but drift is";
}

TEST(Plan, DriftAndPriorAreThePolicys) {
    for (const auto& [drift, state] :
         {std::pair{"enforce", State::changes}, std::pair{"once", State::yielded},
          std::pair{"yield", State::yielded}}) {
        Fixture world({std::string("match: {comm: a}\ncpus: \"1\"\nbind: set\ndrift: ") + drift + "\n"},
                      plain());
        auto task = thread(1, "a");
        world.settle(task);
        task.allowed = CpuSet{5};
        EXPECT_EQ(world.plan(task).state, state) << drift;
    }
    Fixture keep({"match: {comm: a}\ncpus: \"1\"\nbind: set\nprior: keep\n"}, plain());
    EXPECT_EQ(keep.plan(thread(1, "a", CpuSet{3})).state, State::left_alone);
    EXPECT_EQ(keep.plan(thread(2, "a")).state, State::changes);
}

TEST(Plan, ProtectedKernelThreadsAreNeverTouched) {
    Fixture world({"match: {kthread: true}\ncpus: \"1\"\nbind: set\n"}, plain());
    auto task = thread(1, "ksoftirqd/0", CpuSet{0});
    task.flags = inventory::pf_kthread | inventory::pf_no_setaffinity;
    EXPECT_EQ(world.plan(task).state, State::immovable);
}

TEST(Plan, ExclusiveCpusAreClearedOfEverybodyElse) {
    Fixture world(
        {"match: {comm: a}\ncpus: \"6-7\"\nbind: set\nexclusive: true\n", "match: {comm: b}\nbind: set\n"},
        plain());
    auto owner = thread(1, "a");
    auto other = thread(2, "b");
    auto nobodys = thread(3, "c");
    EXPECT_EQ(world.settle(owner, 0), "6-7");
    EXPECT_EQ(world.settle(other, 1), "0-5");
    EXPECT_EQ(world.settle(nobodys, std::nullopt), "0-5");
    EXPECT_EQ(world.plan(nobodys, std::nullopt).state, State::in_place);
    auto kernel = thread(4, "kworker");
    kernel.flags = inventory::pf_kthread;
    EXPECT_FALSE(world.plan(kernel, std::nullopt).action);
    auto stuck = thread(5, "d", CpuSet{7});
    EXPECT_FALSE(world.plan(stuck, std::nullopt).action) << "a task needs some CPU";
}

TEST(Plan, OfflineCpusAreLeftOut) {
    Fixture world({"match: {comm: a}\ncpus: \"2-5\"\nbind: set\n"}, {test::two_sockets(CpuSet{3}), {}, {}});
    auto task = thread(1, "a", CpuSet::range(0, 7) - CpuSet{3});
    EXPECT_EQ(world.settle(task), "2,4-5");
}

TEST(Plan, APolicyWithoutCpusHereIsAProblemAndTouchesNothing) {
    Fixture world({"match: {comm: a}\ncpus: \"node:7\"\n"}, plain());
    ASSERT_EQ(world.placements.problems.size(), 1U);
    EXPECT_NE(world.placements.problems.front().message.find("node 7"), std::string::npos);
    EXPECT_EQ(world.plan(thread(1, "a")).state, State::left_alone);
}

TEST(Plan, IsolatedCpusGiveEachTaskOne) {
    auto machine = plain();
    machine.topology.isolated = CpuSet{4, 5, 6, 7};
    Fixture world(
        {"match: {comm: a}\ncpus: isolated\nbind: set\nspread: cpu\n", "match: {comm: b}\nbind: set\n"},
        machine);
    auto first = thread(1, "a");
    auto second = thread(2, "a");
    auto other = thread(3, "b");
    EXPECT_EQ(world.settle(first), "4");
    EXPECT_EQ(world.settle(second), "6");
    EXPECT_EQ(world.settle(other, 1), "0-3") << "isolated CPUs are only for those who name them";
}

std::map<std::string, std::string> wanted(const Placements& placements) {
    std::map<std::string, std::string> result;
    for (const auto& queue : placements.queues) {
        const auto* irq = std::get_if<IrqMask>(&queue.subject);
        const auto* steering = std::get_if<SteeringMask>(&queue.subject);
        result[irq != nullptr ? irq->label : steering->nic + " " + steering->queue] = queue.wanted.to_list();
    }
    return result;
}

TEST(Lanes, FullBringsAllQueuesOfANicToTheOneProcessItServes) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 1, 2, 30);
    Fixture world({"match: {comm: a}\naffinity: full\nnics: [eth0]\nbind: core\n"}, machine,
                  {{"p0", {{"eth0", 1}}}});
    auto task = thread(1, "a");
    EXPECT_EQ(world.settle(task), "4-5") << "a core of the NIC's node";
    const std::map<std::string, std::string> expected{{"eth0-TxRx-0", "4"}, {"eth0-TxRx-1", "4"},
                                                      {"eth0 tx-0", "4-5"}, {"eth0 tx-1", "4-5"},
                                                      {"eth0 rx-0", ""},    {"eth0 rx-1", ""}};
    EXPECT_EQ(wanted(world.placements), expected);
}

TEST(Lanes, FullDealsWorkersAndQueuesOverTheSameCores) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 2, 30);
    Fixture world({"match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\nbind: core\n"}, machine,
                  {{"p0", {{"eth0", 4}}}});
    auto first = thread(1, "a");
    auto second = thread(2, "a");
    auto third = thread(3, "a");
    EXPECT_EQ(world.settle(first), "0-1");
    EXPECT_EQ(world.settle(second), "2-3");
    EXPECT_EQ(world.settle(third), "0-1");
    EXPECT_EQ(wanted(world.placements).at("eth0-TxRx-0"), "0");
    EXPECT_EQ(wanted(world.placements).at("eth0-TxRx-1"), "2");
}

TEST(Lanes, FewerQueuesThanLanesAreSpreadInSoftware) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    Fixture world({"match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\nbind: core\n"}, machine,
                  {{"p0", {{"eth0", 2}}}});
    EXPECT_EQ(wanted(world.placements).at("eth0-TxRx-0"), "0");
    EXPECT_EQ(wanted(world.placements).at("eth0 rx-0"), "0-3") << "RPS over both lanes";
}

TEST(Lanes, FlowsFollowWhereFewerQueuesAreSpread) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    machine.flow_entries = 0;
    for (auto& queue : machine.nics.back().queues)
        if (queue.direction == netdev::Direction::rx) queue.flow_count = 0;
    const char* policy = "match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\nbind: core\n";
    const auto number = [](const Placements& placements, const Subject& subject) {
        const auto found = std::ranges::find(placements.queues, subject, &QueueTarget::subject);
        return found == placements.queues.end() ? std::string("not wanted")
                                                : mask_text(subject, found->wanted);
    };
    const auto flows = queue_flows(machine.nics.back().device, "eth0", 0);
    {
        const Fixture world({policy}, machine, {{"p0", {{"eth0", 2}}}});
        EXPECT_EQ(number(world.placements, machine_flows()), "32768");
        EXPECT_EQ(number(world.placements, flows), "32768");
    }
    {
        const Fixture world({policy}, machine, {{"p0", {{"eth0", 1}}}});
        EXPECT_EQ(number(world.placements, machine_flows()), "not wanted")
            << "as many queues as lanes: no RPS, so no RFS";
    }
    machine.flow_entries = 65536;
    machine.nics.back().queues.front().flow_count = 1U << 20;
    {
        const Fixture world({policy}, machine, {{"p0", {{"eth0", 2}}}});
        EXPECT_EQ(number(world.placements, machine_flows()), "65536") << "what is larger already stays";
        EXPECT_EQ(number(world.placements, flows), "1048576");
        for (const auto& action : plan_queues(world.placements, Book{}))
            EXPECT_FALSE(is_flow_count(action.subject)) << "nothing is to be done";
    }
    machine.flow_entries = {};
    const Fixture world({policy}, machine, {{"p0", {{"eth0", 2}}}});
    EXPECT_EQ(number(world.placements, flows), "not wanted") << "the kernel has none";
}

TEST(FlowCounts, ANumberIsTheSetOfItsBits) {
    for (const std::uint32_t value : {0U, 1U, 5U, 4096U, 32768U, 0x80000001U, ~0U})
        EXPECT_EQ(from_bits(to_bits(value)), value);
    EXPECT_EQ(to_bits(32768), CpuSet{15});
    EXPECT_EQ(from_bits(CpuSet{0, 40}), 1U);
    EXPECT_EQ(mask_text(machine_flows(), CpuSet{15}), "32768");
    EXPECT_EQ(mask_text(SteeringMask{"eth0", "eth0", "rx-0"}, CpuSet{15}), "15");
    EXPECT_EQ(queue_of(queue_flows("d", "eth0", 7)), "rx-7");
}

TEST(Lanes, NicsOfOneNodeTakeItsCoresInTurnAndEachProcessGoesToItsOwn) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    test::add_nic(machine, "eth1", 0, 1, 40);
    test::add_nic(machine, "eth2", 1, 1, 50);
    Fixture world({"match: {comm: a}\naffinity: full\nnics: auto\nbind: core\n"}, machine,
                  {{"p0", {{"eth0", 1}, {"eth1", 1}, {"eth2", 1}}}});
    const auto where = wanted(world.placements);
    EXPECT_EQ(where.at("eth0-TxRx-0"), "0");
    EXPECT_EQ(where.at("eth1-TxRx-0"), "2");
    EXPECT_EQ(where.at("eth2-TxRx-0"), "4");
    const std::vector<std::string> on_eth1{"eth1"};
    const std::vector<std::string> on_eth2{"eth2"};
    auto first = thread(1, "a");
    auto second = thread(2, "a");
    EXPECT_EQ(world.settle(first, 0, &on_eth2), "4-5");
    EXPECT_EQ(world.settle(second, 0, &on_eth1), "2-3");
}

TEST(Lanes, StandInsComeFromTheCoreTheCacheGroupTheNodeAndThePolicy) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    const Fixture world({"match: {comm: a}\naffinity: irq\nnics: [eth0]\ncpus: \"0-6\"\n"}, machine);
    const auto others = [&](unsigned cpu, const char* policy) {
        return nearest_others(world.placements, machine.topology,
                              {IrqMask{"d", "eth0-TxRx-0", 30}, {}, CpuSet{cpu}, policy, "", false});
    };
    EXPECT_EQ(others(2, "p0"), (std::vector<unsigned>{3, 0, 1, 4, 5, 6})) << "7 is not the policy's";
    EXPECT_EQ(others(5, "p0"), (std::vector<unsigned>{4, 6, 0, 1, 2, 3}));
    EXPECT_TRUE(others(2, "nobody's").empty());
}

TEST(Lanes, IrqModelSpreadsQueuesAndLeavesTasks) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 4, 30);
    Fixture world({"match: {comm: a}\naffinity: irq\nnics: [\"eth*\"]\n"}, machine);
    const auto where = wanted(world.placements);
    EXPECT_EQ(where.at("eth0-TxRx-0"), "0");
    EXPECT_EQ(where.at("eth0-TxRx-1"), "2");
    EXPECT_EQ(where.at("eth0-TxRx-2"), "0");
    EXPECT_EQ(where.at("eth0-TxRx-3"), "2");
    EXPECT_EQ(world.plan(thread(1, "a")).state, State::left_alone);
}

TEST(Lanes, SeparateKeepsInterruptsOffTheWorkersCoreInItsCacheGroup) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    Fixture world({"match: {comm: a}\naffinity: full\nnics: [eth0]\nbind: core\nseparate: true\n"}, machine,
                  {{"p0", {{"eth0", 1}}}});
    auto task = thread(1, "a");
    EXPECT_EQ(world.settle(task), "0-1");
    EXPECT_EQ(wanted(world.placements).at("eth0-TxRx-0"), "2");
}

TEST(Lanes, ControlVectorsAndTakenNicsAreLeftAlone) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    machine.nics.front().msi_irqs.push_back(31);
    irq::Irq link;
    link.number = 31;
    link.actions = {"eth0"};
    link.requested = CpuSet{0};
    machine.irqs.irqs.push_back(link);
    Fixture world({"match: {comm: a}\naffinity: irq\nnics: [eth0]\n",
                   "match: {comm: b}\naffinity: irq\nnics: [eth0]\n"},
                  machine);
    EXPECT_FALSE(wanted(world.placements).contains("eth0"));
    ASSERT_EQ(world.placements.problems.size(), 1U);
    EXPECT_EQ(world.placements.problems.front().policy, "p1");
}

TEST(Queues, APlanOfQueuesIsEmptyOnceTheyAreThere) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 2, 30);
    Fixture world({"match: {comm: a}\naffinity: irq\nnics: [eth0]\n"}, machine);
    const auto actions = plan_queues(world.placements, world.book);
    EXPECT_EQ(actions.size(), 4U) << "two interrupts, two XPS maps; RPS is off already";
    for (auto& queue : world.placements.queues)
        queue.present = queue.wanted;
    EXPECT_TRUE(plan_queues(world.placements, world.book).empty());
}

TEST(Plan, TheSameInputGivesTheSamePlan) {
    const auto run = [] {
        auto machine = plain();
        test::add_nic(machine, "eth0", 0, 3, 30);
        Fixture world({"match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\nbind: cpu\n"}, machine,
                      {{"p0", {{"eth0", 3}}}});
        std::string text;
        for (int i = 1; i < 20; ++i) {
            auto task = thread(i, "a");
            text += world.settle(task) + ";";
        }
        for (const auto& action : plan_queues(world.placements, world.book))
            text += to_string(action.subject) + "=" + action.to.to_list() + action.reason;
        return text;
    };
    EXPECT_EQ(run(), run());
}

} // namespace
} // namespace affinityd::planner
