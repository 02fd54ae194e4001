// SPDX-License-Identifier: Apache-2.0
// Several interfaces for one process: bonds, bridges, VLANs, and what `auto` finds.
#include "world.hpp"

#include <map>
#include <random>
#include <set>

namespace affinityd::planner {
namespace {

using test::plain;
using test::thread;
using test::World;
using Names = std::vector<std::string>;

constexpr auto one_task = "match: {comm: a}\naffinity: full\nnics: [bond0]\nbind: core\n";
constexpr auto by_itself = "match: {comm: a}\naffinity: full\nnics: auto\nbind: core\n";

/// An interface made of software, on top of others.
netdev::Nic& add_upper(machine::Machine& machine, const std::string& name, Names lower) {
    auto& nic = machine.nics.emplace_back();
    nic.name = name;
    nic.up = true;
    nic.lower = std::move(lower);
    link_vectors(machine);
    return nic;
}

/// eth0 and eth1, of two queues each on the given nodes, as ports of bond0.
machine::Machine bonded(unsigned first_node, unsigned second_node) {
    auto machine = plain();
    test::add_nic(machine, "eth0", first_node, 2, 30);
    test::add_nic(machine, "eth1", second_node, 2, 40);
    for (auto& nic : machine.nics)
        nic.master = "bond0";
    add_upper(machine, "bond0", {"eth0", "eth1"});
    return machine;
}

/// Where the interrupts of an interface go, in the order of its queues.
Names interrupts(const World& world, const std::string& nic) {
    Names cpus;
    for (const auto& target : world.placements.queues)
        if (target.nic == nic && std::holds_alternative<IrqMask>(target.subject))
            cpus.push_back(target.wanted.cpus().to_list());
    return cpus;
}

/// How many interrupts of the interfaces arrive on a core that the task may run on, in per cent.
unsigned at_home(const World& world, const inventory::Thread& task, const Names& nics) {
    unsigned all = 0, home = 0;
    for (const auto& nic : nics)
        for (const auto& cpu : interrupts(world, nic)) {
            ++all;
            home += task.allowed.contains(*CpuSet::parse_list(cpu)) ? 1 : 0;
        }
    return all == 0 ? 0 : home * 100 / all;
}

const std::string* problem_of(const World& world, const std::string& nic) {
    const auto found = std::ranges::find(world.placements.problems, nic, &Problem::subject);
    return found == world.placements.problems.end() ? nullptr : &found->message;
}

TEST(SharedLanes, AllInterruptsOfABondArriveOnTheCoreOfItsOneProcess) {
    for (const auto& [policy, usage] : {std::pair{one_task, NicUsage{{"p0", {{{"eth0", "eth1"}, 1}}}}},
                                        {one_task, {{"p0", {{{}, 1}}}}},
                                        {by_itself, {{"p0", {{{"eth0", "eth1"}, 1}}}}},
                                        {by_itself, {{"p0", {{{"bond0"}, 1}}}}}}) {
        World world({policy}, bonded(0, 0), usage);
        auto task = thread(1, "a");
        EXPECT_EQ(world.settle(task), "0-1");
        EXPECT_EQ(at_home(world, task, {"eth0", "eth1"}), 100U);
        EXPECT_TRUE(world.placements.problems.empty());
    }
}

TEST(SharedLanes, EachWorkerHasTheSameQueuesOfAllPorts) {
    World world({"match: {comm: a}\naffinity: full\nnics: [bond0]\nspread: core\nbind: core\n"}, bonded(0, 0),
                {{"p0", {{{"eth0", "eth1"}, 2}}}});
    EXPECT_EQ(interrupts(world, "eth0"), (Names{"0", "2"}));
    EXPECT_EQ(interrupts(world, "eth1"), (Names{"0", "2"}));
    auto first = thread(1, "a"), second = thread(2, "a");
    EXPECT_EQ(world.settle(first), "0-1");
    EXPECT_EQ(world.settle(second), "2-3");
}

TEST(SharedLanes, PortsOfTwoNodesMeetOnOneAndNotHalfway) {
    World world({one_task}, bonded(1, 0), {{"p0", {{{"eth0", "eth1"}, 1}}}});
    auto task = thread(1, "a");
    EXPECT_EQ(world.settle(task), "0-1") << "the lower of equals";
    EXPECT_EQ(at_home(world, task, {"eth0", "eth1"}), 100U);
    auto machine = bonded(0, 1);
    test::add_nic(machine, "eth2", 1, 2, 50);
    std::ranges::find(machine.nics, "bond0", &netdev::Nic::name)->lower.push_back("eth2");
    World three({one_task}, machine, {{"p0", {{{"eth0", "eth1", "eth2"}, 1}}}});
    auto other = thread(1, "a");
    EXPECT_EQ(three.settle(other), "4-5") << "where most of them are";
    EXPECT_EQ(at_home(three, other, {"eth0", "eth1", "eth2"}), 100U);
}

TEST(SharedLanes, MoreWorkersThanTheNodeHasCoresUseThatOfTheOtherPortToo) {
    World world({"match: {comm: a}\naffinity: full\nnics: [bond0]\nspread: core\nbind: core\n"}, bonded(0, 1),
                {{"p0", {{{"eth0", "eth1"}, 4}}}});
    std::map<std::string, int> cores;
    for (int tid = 1; tid <= 4; ++tid) {
        auto task = thread(tid, "a");
        ++cores[world.settle(task)];
    }
    EXPECT_EQ(cores, (std::map<std::string, int>{{"0-1", 1}, {"2-3", 1}, {"4-5", 1}, {"6-7", 1}}));
    EXPECT_EQ(interrupts(world, "eth0"), (Names{"0", "2"}));
    EXPECT_EQ(interrupts(world, "eth1"), (Names{"4", "6"})) << "each worker has one queue";
}

TEST(SharedLanes, TheActivePortsNodeDecidesAndAFailoverMovesAll) {
    auto machine = bonded(0, 1);
    auto& bond = machine.nics.back();
    bond.active_lower = "eth1";
    World world({one_task}, machine, {{"p0", {{{"eth0", "eth1"}, 1}}}});
    auto task = thread(1, "a");
    EXPECT_EQ(world.settle(task), "4-5");
    EXPECT_EQ(at_home(world, task, {"eth0", "eth1"}), 100U) << "the spare's wait there already";
    const auto* lanes = world.placements.policies[0].nic("eth0");
    ASSERT_NE(lanes, nullptr);
    EXPECT_EQ(lanes->nics, (Names{"eth0", "eth1"}));
    EXPECT_EQ(lanes->spares, Names{"eth0"});

    world.machine.nics.back().active_lower = "eth0";
    world.reload({one_task}, {{"p0", {{{"eth0", "eth1"}, 1}}}});
    EXPECT_EQ(world.settle(task), "0-1");
    EXPECT_EQ(at_home(world, task, {"eth0", "eth1"}), 100U);
    world.machine.nics.back().active_lower.reset();
    world.reload({one_task}, {{"p0", {{{"eth0", "eth1"}, 1}}}});
    EXPECT_EQ(world.settle(task), "0-1") << "all carry traffic now: the lower of equals";
}

TEST(SharedLanes, AVlanOnABondAndABridgeOnTopOfItAreTheBond) {
    auto machine = bonded(0, 1);
    add_upper(machine, "bond0.7", {"bond0"});
    add_upper(machine, "br0", {"bond0.7", "vnet0"});
    add_upper(machine, "vnet0", {}).master = "br0";
    add_upper(machine, "macvlan0", {"br0"});
    for (const char* name : {"bond0.7", "br0", "macvlan0"})
        for (const bool is_auto : {false, true}) {
            const auto nics = is_auto ? std::string("auto") : "[" + std::string(name) + "]";
            World world({"match: {comm: a}\naffinity: full\nnics: " + nics + "\nbind: core\n"}, machine,
                        {{"p0", {{{name}, 1}}}});
            auto task = thread(1, "a");
            EXPECT_EQ(world.settle(task), "0-1") << name << nics;
            EXPECT_EQ(at_home(world, task, {"eth0", "eth1"}), 100U) << name << nics;
        }
}

TEST(SharedLanes, ABridgeOfOneRealPortIsThatPortWhateverGuestsItHas) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 1, 2, 30);
    for (const char* name : {"veth0", "veth1", "vnet2"}) {
        auto guest = machine::test::nic(name, 0, 2, 0);
        guest.device.clear();
        guest.msi_irqs.clear();
        guest.master = "br0";
        machine.nics.push_back(guest);
    }
    add_upper(machine, "br0", {"veth0", "eth0", "veth1", "vnet2"});
    World world({"match: {comm: a}\naffinity: full\nnics: [br0]\nbind: core\n"}, machine,
                {{"p0", {{{"eth0"}, 1}}}});
    auto task = thread(1, "a");
    EXPECT_EQ(world.settle(task), "4-5");
    EXPECT_EQ(at_home(world, task, {"eth0"}), 100U);
    for (const auto& target : world.placements.queues)
        EXPECT_EQ(target.nic, "eth0");
}

TEST(SharedLanes, NothingButGuestsUnderABridgeIsSaid) {
    auto machine = plain();
    add_upper(machine, "veth0", {}).master = "br0";
    add_upper(machine, "br0", {"veth0"});
    const World world({"match: {comm: a}\naffinity: full\nnics: [br0]\n"}, machine);
    EXPECT_TRUE(world.placements.queues.empty());
    ASSERT_NE(problem_of(world, "br0"), nullptr);
    EXPECT_NE(problem_of(world, "br0")->find("guests"), std::string::npos);
}

TEST(SharedLanes, PortsOfOneCardBelongTogetherIfTheyServeTheSameProcess) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 2, 30);
    test::add_nic(machine, "eth1", 0, 2, 40);
    for (auto& nic : machine.nics)
        nic.device = "devices/pci0000:00/0000:00:05.0";
    World both({by_itself}, machine, {{"p0", {{{"eth0", "eth1"}, 1}}}});
    auto task = thread(1, "a");
    EXPECT_EQ(both.settle(task), "0-1");
    EXPECT_EQ(at_home(both, task, {"eth0", "eth1"}), 100U);
    World each({by_itself}, machine, {{"p0", {{{"eth0"}, 1}, {{"eth1"}, 1}}}});
    EXPECT_EQ(interrupts(each, "eth0"), (Names{"0", "0"}));
    EXPECT_EQ(interrupts(each, "eth1"), (Names{"2", "2"})) << "one process each";
}

TEST(SharedLanes, ProcessesOfWhichNothingIsKnownReadFromAll) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    test::add_nic(machine, "eth1", 0, 1, 40);
    const World world({"match: {comm: a}\naffinity: full\nnics: [eth0, eth1]\nbind: core\n"}, machine,
                      {{"p0", {{{}, 1}}}});
    EXPECT_EQ(interrupts(world, "eth0"), Names{"0"});
    EXPECT_EQ(interrupts(world, "eth1"), Names{"0"});
    EXPECT_EQ(world.placements.policies[0].nics.size(), 1U);
}

TEST(SharedLanes, WhatServesOneProcessWithAnotherIsServedWithAllOfThem) {
    auto machine = plain();
    for (unsigned i = 0; i < 4; ++i)
        test::add_nic(machine, "eth" + std::to_string(i), 0, 1, 30 + i * 10);
    World world({by_itself}, machine,
                {{"p0", {{{"eth0", "eth2"}, 1}, {{"eth2", "eth3"}, 1}, {{"eth1"}, 1}, {{"gone"}, 7}}}});
    const auto& groups = world.placements.policies[0].nics;
    ASSERT_EQ(groups.size(), 2U);
    EXPECT_EQ(groups[0].nics, (Names{"eth0", "eth2", "eth3"}));
    EXPECT_EQ(groups[0].name, "eth0");
    EXPECT_EQ(groups[0].seats(), 2U) << "two processes";
    EXPECT_EQ(groups[1].nics, Names{"eth1"});
    EXPECT_EQ(groups[1].seats(), 1U);
}

TEST(SharedLanes, WithoutTasksNothingIsShared) {
    const World world({"match: {comm: a}\naffinity: irq\nnics: [bond0]\n"}, bonded(0, 1));
    EXPECT_EQ(interrupts(world, "eth0"), (Names{"0", "2"})) << "each on its own node";
    EXPECT_EQ(interrupts(world, "eth1"), (Names{"4", "6"}));
}

TEST(SharedLanes, AnInterfaceThatIsNowhereHasNoSay) {
    auto machine = bonded(1, 0);
    auto& lost = machine.nics[1];
    lost.node.reset();
    lost.local_cpus = {};
    World world({one_task}, machine, {{"p0", {{{"eth0", "eth1"}, 1}}}});
    auto task = thread(1, "a");
    EXPECT_EQ(world.settle(task), "4-5");
    EXPECT_EQ(at_home(world, task, {"eth0", "eth1"}), 100U);
}

TEST(SharedLanes, APortThatAnotherPolicyHasIsLeftOut) {
    const auto machine = bonded(0, 0);
    World world({"match: {comm: b}\naffinity: irq\nnics: [eth1]\n", one_task}, machine,
                {{"p1", {{{"eth0", "eth1"}, 1}}}});
    const auto shared = std::ranges::find_if(world.placements.policies, [](const ResolvedPolicy& resolved) {
        return resolved.policy->model == policy::Model::full;
    });
    ASSERT_EQ(shared->nics.size(), 1U);
    EXPECT_EQ(shared->nics[0].nics, Names{"eth0"});
    EXPECT_NE(problem_of(world, "eth1"), nullptr);
}

TEST(SharedLanes, TasksStayWhenAPortComesAndGoes) {
    auto machine = bonded(0, 0);
    const NicUsage usage{{"p0", {{{"eth0", "eth1"}, 2}}}};
    const std::string text = "match: {comm: a}\naffinity: full\nnics: [bond0]\nspread: core\nbind: core\n";
    World world({text}, machine, usage);
    auto first = thread(1, "a"), second = thread(2, "a");
    const Names before{world.settle(first), world.settle(second)};
    world.machine.nics.back().lower = {"eth0"};
    world.reload({text}, {{"p0", {{{"eth0"}, 2}}}});
    EXPECT_EQ((Names{world.settle(first), world.settle(second)}), before);
    world.machine.nics.back().lower = {"eth0", "eth1"};
    world.reload({text}, usage);
    EXPECT_EQ((Names{world.settle(first), world.settle(second)}), before);
}

TEST(SharedLanes, SeparateKeepsTheInterruptsOfAllPortsInOnePlace) {
    World world({std::string(one_task) + "separate: true\n"}, bonded(0, 1),
                {{"p0", {{{"eth0", "eth1"}, 1}}}});
    auto task = thread(1, "a");
    EXPECT_EQ(world.settle(task), "0-1");
    EXPECT_EQ(interrupts(world, "eth0"), (Names{"2", "2"}));
    EXPECT_EQ(interrupts(world, "eth1"), (Names{"2", "2"}));
}

/// Interfaces on both nodes, stacks on some of them, and who is served by which, all by chance.
struct Chance {
    std::mt19937 random;
    machine::Machine machine = plain();
    NicUsage usage;

    explicit Chance(unsigned seed) : random(seed) {
        const unsigned nics = 1 + below(6);
        for (unsigned i = 0; i < nics; ++i)
            test::add_nic(machine, "eth" + std::to_string(i), below(2), 1 + below(3), 30 + i * 10);
        for (unsigned i = 0; i < below(4); ++i) {
            auto& upper = add_upper(machine, "up" + std::to_string(i), some(nics));
            if (below(2) == 0 && !upper.lower.empty())
                upper.active_lower = upper.lower[below(2) % upper.lower.size()];
        }
        for (unsigned i = 0; i < 1 + below(3); ++i)
            usage["p0"][below(4) == 0 ? Names{} : some(nics)] += 1 + below(5);
        usage["p0"][{"eth0"}] += 1;
    }
    unsigned below(unsigned end) { return static_cast<unsigned>(random() % end); }
    Names some(unsigned nics) {
        Names names;
        for (unsigned i = 0; i < nics; ++i)
            if (below(2) == 0) names.push_back("eth" + std::to_string(i));
        return names;
    }
};

TEST(SharedLanes, WhateverBelongsTogetherHasOneSetOfLanesAndNothingIsInTwo) {
    std::size_t shared = 0;
    for (unsigned seed = 0; seed < 2000; ++seed) {
        SCOPED_TRACE(seed);
        const Chance chance(seed);
        const World world({"match: {comm: a}\naffinity: full\nnics: auto\nspread: core\nbind: core\n"},
                          chance.machine, chance.usage);
        const auto& resolved = world.placements.policies[0];
        std::map<std::string, const NicLanes*> lanes;
        for (const auto& group : resolved.nics) {
            for (const auto& row : group.rows)
                EXPECT_LE(row.slots.size(), 4U) << "one on a core";
            shared += group.nics.size() > 1 ? 1 : 0;
            for (const auto& nic : group.nics)
                EXPECT_TRUE(lanes.emplace(nic, &group).second) << nic << " is in two";
        }
        EXPECT_TRUE(lanes.contains("eth0"));
        const auto are_together = [&](const Names& names) {
            std::set<const NicLanes*> groups;
            for (const auto& name : names)
                if (lanes.contains(name)) groups.insert(lanes.at(name));
            return groups.size() < 2;
        };
        for (const auto& [readers, tasks] : chance.usage.at("p0"))
            EXPECT_TRUE(are_together(readers.nics));
        for (const auto& nic : chance.machine.nics)
            EXPECT_TRUE(are_together(nic.lower)) << nic.name;
        for (const auto& target : world.placements.queues) {
            const auto* irq = std::get_if<IrqMask>(&target.subject);
            if (irq == nullptr) continue;
            const auto is_it = [&](const CpuSet& seat) { return seat.contains(target.wanted.cpus()); };
            EXPECT_TRUE(std::ranges::any_of(test::seats(*lanes.at(target.nic)), is_it)) << irq->label;
        }
    }
    EXPECT_GT(shared, 1000U) << "enough of what this is about";
}

TEST(SharedLanes, ReasonsNameTheInterfacesThatShareThem) {
    World world({one_task}, bonded(0, 1), {{"p0", {{{"eth0", "eth1"}, 1}}}});
    auto task = thread(1, "a");
    const auto plan = world.plan(task);
    ASSERT_TRUE(plan.target);
    EXPECT_NE(reason_of(world.placements, *plan.target).find("the lane of eth0, eth1"), std::string::npos);
    std::map<std::string, std::string> texts;
    for (const auto& target : world.placements.queues)
        if (std::holds_alternative<IrqMask>(target.subject)) texts[target.nic] = target.reason.text;
    EXPECT_EQ(texts.at("eth0"), "full: queue 1 of eth0 on core 0-1 near it, with the tasks it serves");
    EXPECT_EQ(texts.at("eth1"),
              "full: queue 1 of eth1 on core 0-1 near eth0, with the tasks that both serve");
}

} // namespace
} // namespace affinityd::planner
