// SPDX-License-Identifier: Apache-2.0
// Where interrupts, steering maps and the tasks that they serve belong.
#include "world.hpp"

#include <algorithm>
#include <map>

namespace affinityd::planner {
namespace {

using test::plain;
using test::thread;
using test::World;

std::map<std::string, std::string> wanted(const Placements& placements) {
    std::map<std::string, std::string> result;
    for (const auto& target : placements.queues) {
        const auto* irq = std::get_if<IrqMask>(&target.subject);
        result[irq != nullptr ? irq->label : to_string(target.subject)] = target.wanted.to_string();
    }
    return result;
}

TEST(Lanes, FullBringsAllQueuesOfANicToTheOneProcessItServes) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 1, 2, 30);
    World world({"match: {comm: a}\naffinity: full\nnics: [eth0]\nbind: core\n"}, machine,
                {{"p0", {{{"eth0"}, 1}}}});
    auto task = thread(1, "a");
    EXPECT_EQ(world.settle(task), "4-5") << "a core of the NIC's node";
    const std::map<std::string, std::string> expected{{"eth0-TxRx-0", "4"}, {"eth0-TxRx-1", "4"},
                                                      {"eth0 tx-0", "4-5"}, {"eth0 tx-1", "4-5"},
                                                      {"eth0 rx-0", ""},    {"eth0 rx-1", ""}};
    EXPECT_EQ(wanted(world.placements), expected);
}

TEST(Lanes, FullDistributesWorkersAndQueuesOverTheSameCores) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 2, 30);
    World world({"match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\nbind: core\n"}, machine,
                {{"p0", {{{"eth0"}, 4}}}});
    auto first = thread(1, "a");
    auto second = thread(2, "a");
    auto third = thread(3, "a");
    EXPECT_EQ(world.settle(first), "0-1");
    EXPECT_EQ(world.settle(second), "2-3");
    EXPECT_EQ(world.settle(third), "4-5") << "far away, but a core of its own";
    EXPECT_EQ(wanted(world.placements).at("eth0-TxRx-0"), "0");
    EXPECT_EQ(wanted(world.placements).at("eth0-TxRx-1"), "2");
}

/// CPUs of the queues of eth0, near node 1, in their order.
std::vector<std::string> queue_cpus(unsigned queues, const std::string& more, unsigned tasks) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 1, queues, 30);
    const World world({"match: {comm: a}\nnics: [eth0]\nspread: core\nbind: core\n" + more}, machine,
                      {{"p0", {{{"eth0"}, tasks}}}});
    const auto all = wanted(world.placements);
    std::vector<std::string> cpus;
    for (unsigned queue = 0; queue < queues; ++queue)
        cpus.push_back(all.at("eth0-TxRx-" + std::to_string(queue)));
    return cpus;
}

TEST(Lanes, MoreTasksThanCoresNearTheNicHaveTheOthersToo) {
    using Cpus = std::vector<std::string>;
    const std::string full = "affinity: full\n";
    EXPECT_EQ(queue_cpus(4, full, 2), (Cpus{"4", "6", "4", "6"})) << "enough near it";
    EXPECT_EQ(queue_cpus(4, full, 3), (Cpus{"4", "6", "0", "4"})) << "near ones have the first queues";
    EXPECT_EQ(queue_cpus(4, full, 4), (Cpus{"4", "6", "0", "2"}));
    EXPECT_EQ(queue_cpus(4, full, 9), (Cpus{"4", "6", "0", "2"})) << "there are no more";
    EXPECT_EQ(queue_cpus(2, full, 4), (Cpus{"4", "6"})) << "the queues are near";
    EXPECT_EQ(queue_cpus(4, full + "cpus: nic\n", 4), (Cpus{"4", "6", "4", "6"})) << "as the policy says";
    EXPECT_EQ(queue_cpus(4, full, 0), (Cpus{"4", "6", "0", "2"})) << "one a core while no reader is known";
    EXPECT_EQ(queue_cpus(4, "affinity: irq\n", 0), (Cpus{"4", "6", "0", "2"}));
    EXPECT_EQ(queue_cpus(4, "affinity: irq\ncpus: nic\n", 0), (Cpus{"4", "6", "5", "7"})) << "siblings last";
}

TEST(Lanes, FewerQueuesThanLanesAreSpreadInSoftware) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    const World world({"match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\nbind: core\n"}, machine,
                      {{"p0", {{{"eth0"}, 2}}}});
    EXPECT_EQ(wanted(world.placements).at("eth0-TxRx-0"), "0");
    EXPECT_EQ(wanted(world.placements).at("eth0 rx-0"), "0-3") << "RPS over both lanes";
    const auto rps = std::ranges::find_if(world.placements.queues, [](const QueueTarget& target) {
        return to_string(target.subject) == "eth0 rx-0";
    });
    EXPECT_EQ(rps->reason.text, "RPS hands its packets on to the lanes of 0-3");
}

TEST(Lanes, WithoutSteeringOnlyInterruptsArePlaced) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    machine.flow_entries = 0;
    const World world(
        {"match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\nbind: core\nsteering: false\n"},
        machine, {{"p0", {{{"eth0"}, 2}}}});
    const std::map<std::string, std::string> expected{{"eth0-TxRx-0", "0"}};
    EXPECT_EQ(wanted(world.placements), expected);
}

/// eth0 with two interrupts and eight transmit queues, as drivers have whose vectors are few.
machine::Machine with_more_transmit_queues_than_vectors() {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 2, 30);
    for (unsigned i = 2; i < 8; ++i)
        machine.nics.front().queues.push_back({netdev::Direction::tx, i, {}, {}, {}, CpuSet{}, {}});
    return machine;
}

TEST(Lanes, TransmitQueuesWithoutVectorsOfTheirOwnAreDealtToTheLanesInTurn) {
    const World world({"match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\nbind: core\n"},
                      with_more_transmit_queues_than_vectors(), {{"p0", {{{"eth0"}, 2}}}});
    const auto where = wanted(world.placements);
    for (unsigned i = 0; i < 8; ++i)
        EXPECT_EQ(where.at("eth0 tx-" + std::to_string(i)), i % 2 == 0 ? "0-1" : "2-3") << i;
}

TEST(Lanes, EachLaneHasATransmitQueueAlsoWhereVectorsAreFewerThanLanes) {
    auto machine = with_more_transmit_queues_than_vectors();
    machine.nics.front().node.reset(); // near all CPUs alike: four lanes
    machine.nics.front().local_cpus = machine.topology.online;
    const World world({"match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\nbind: core\n"}, machine,
                      {{"p0", {{{"eth0"}, 4}}}});
    const auto where = wanted(world.placements);
    for (unsigned i = 0; i < 8; ++i)
        EXPECT_EQ(where.at("eth0 tx-" + std::to_string(i)), i % 2 == 0 ? "0-1,4-5" : "2-3,6-7") << i;
}

TEST(Lanes, NicsOfOneNodeTakeItsCoresInTurnAndEachProcessGoesToItsOwn) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    test::add_nic(machine, "eth1", 0, 1, 40);
    test::add_nic(machine, "eth2", 1, 1, 50);
    World world({"match: {comm: a}\naffinity: full\nnics: auto\nbind: core\n"}, machine,
                {{"p0", {{{"eth0"}, 1}, {{"eth1"}, 1}, {{"eth2"}, 1}}}});
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

TEST(Lanes, IrqModelSpreadsQueuesAndLeavesTasks) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 4, 30);
    World world({"match: {comm: a}\naffinity: irq\nnics: [\"eth*\"]\n"}, machine);
    const auto where = wanted(world.placements);
    EXPECT_EQ(where.at("eth0-TxRx-0"), "0");
    EXPECT_EQ(where.at("eth0-TxRx-1"), "2");
    EXPECT_EQ(where.at("eth0-TxRx-2"), "4") << "the next nearest";
    EXPECT_EQ(where.at("eth0-TxRx-3"), "6");
    EXPECT_EQ(world.plan(thread(1, "a")).state, ThreadPlan::State::left_alone);
}

TEST(Lanes, SeparateKeepsInterruptsOffTheWorkersCoreInItsCacheGroup) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    World world({"match: {comm: a}\naffinity: full\nnics: [eth0]\nbind: core\nseparate: true\n"}, machine,
                {{"p0", {{{"eth0"}, 1}}}});
    auto task = thread(1, "a");
    EXPECT_EQ(world.settle(task), "0-1");
    EXPECT_EQ(wanted(world.placements).at("eth0-TxRx-0"), "2");
}

TEST(Lanes, SeparateLeavesRoomForInterruptsInEachCacheGroupAsFarAsThereIsAny) {
    for (const unsigned workers : {2U, 4U, 6U, 8U, 12U, 14U, 15U, 16U}) {
        auto machine = test::without_smt(16); // two cache groups of eight cores
        auto& topology = machine.topology;    // in one node
        topology.nodes = {{0, topology.online, 1U << 30, {}}};
        topology.packages = {topology.online};
        for (auto& cpu : topology.cpus)
            cpu.node = 0;
        test::add_nic(machine, "eth0", 0, workers, 30);
        const World world({"match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\nbind: core\n"
                           "separate: true\n"},
                          machine, {{"p0", {{{"eth0"}, workers}}}});
        CpuSet lanes;
        std::map<std::string, unsigned> lines;
        for (const auto& seat : test::seats(*world.placements.policies.front().nic("eth0")))
            lanes |= seat;
        ASSERT_EQ(lanes.count(), workers);
        std::size_t mixed = 0;
        for (const auto& target : world.placements.queues) {
            if (!std::holds_alternative<IrqMask>(target.subject)) continue;
            mixed += target.wanted.cpus().intersects(lanes) ? 1 : 0;
            ++lines[target.wanted.to_string()];
        }
        if (workers <= 14) {
            EXPECT_EQ(mixed, 0U) << workers;
        }
        if (workers <= 8) {
            EXPECT_EQ(lines.size(), workers) << "a core each";
        }
        const auto& problems = world.placements.problems;
        EXPECT_EQ(problems.size(), mixed > 0 ? 1U : 0U) << workers;
        if (workers == 16) {
            ASSERT_EQ(mixed, 16U);
            ASSERT_FALSE(problems.empty());
            EXPECT_NE(problems.front().message.find("16 of its 16 lanes"), std::string::npos);
        }
    }
}

TEST(Lanes, ControlVectorsAndNicsOfAnotherPolicyAreLeftAlone) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    machine.nics.front().msi_irqs.push_back(31);
    irq::Irq link;
    link.number = 31;
    link.actions = {"eth0"};
    link.requested = CpuSet{0};
    machine.irqs.irqs.push_back(link);
    link_vectors(machine);
    ASSERT_EQ(machine.vectors_of("eth0").size(), 2U);
    const World world({"match: {comm: a}\naffinity: irq\nnics: [eth0]\n",
                       "match: {comm: b}\naffinity: irq\nnics: [eth0]\n"},
                      machine);
    EXPECT_FALSE(wanted(world.placements).contains("eth0"));
    ASSERT_EQ(world.placements.problems.size(), 1U);
    EXPECT_EQ(world.placements.problems.front().policy, "p1");
}

TEST(Lanes, TasksOfASecondPolicyOnOneNicAreNearItWithCoresOfTheirOwn) {
    for (const std::string nics : {"auto", "[eth0]"}) {
        auto machine = test::without_smt(8);
        test::add_nic(machine, "eth0", 1, 2, 30);
        const auto text = [&](const char* comm) {
            return std::string("match: {comm: ") + comm + "}\naffinity: full\nnics: " + nics +
                   "\nbind: core\n";
        };
        World world({text("a"), text("b")}, machine, {{"p0", {{{"eth0"}, 2}}}, {"p1", {{{"eth0"}, 2}}}});
        const std::vector<std::string> eth0{"eth0"};
        std::vector<std::string> cores;
        for (int i = 0; i < 4; ++i) {
            auto task = thread(i + 1, i < 2 ? "a" : "b");
            cores.push_back(world.settle(task, i / 2, &eth0));
        }
        EXPECT_EQ(cores, (std::vector<std::string>{"4", "5", "6", "7"})) << nics;
        for (const auto& target : world.placements.queues)
            EXPECT_EQ(target.policy, "p0") << to_string(target.subject);
        ASSERT_EQ(world.placements.problems.size(), 1U);
        EXPECT_EQ(world.placements.problems.front().message,
                  "its queues are already placed by policy p0: affinity: full acts as process near it");
    }
}

TEST(Lanes, NicsOfAStackAreThoseAtItsBottomAndALoopHasNone) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    test::add_nic(machine, "eth1", 1, 1, 40);
    for (const char* name : {"bond0", "a", "b"}) {
        machine.nics.emplace_back();
        machine.nics.back().name = name;
    }
    machine.nics[2].lower = {"eth1", "eth0"};
    machine.nics[3].lower = {"b"};
    machine.nics[4].lower = {"a"};
    link_vectors(machine);
    const auto set = test::policies({"match: {comm: a}\naffinity: irq\nnics: [bond0]\n",
                                     "match: {comm: b}\naffinity: irq\nnics: [a, b]\n"});
    EXPECT_EQ(policy_nics(set.policies[0], machine, {}), (std::vector<std::string>{"eth0", "eth1"}));
    EXPECT_TRUE(policy_nics(set.policies[1], machine, {}).empty());
}

TEST(Lanes, PortsOfGuestsAreNeverAPolicysUnlessItNamesThem) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    const auto add = [&](const char* name, std::vector<std::string> lower, const char* master) {
        auto nic = machine::test::nic(name, 1, 1, 0);
        nic.device.clear();
        nic.msi_irqs.clear();
        nic.lower = std::move(lower);
        nic.master = master;
        machine.nics.push_back(std::move(nic));
    };
    add("br0", {"eth0", "veth1", "vnet2"}, "");
    add("veth1", {}, "br0");
    add("vnet2", {}, "br0");
    add("veth3", {}, "");
    link_vectors(machine);
    using Names = std::vector<std::string>;
    const auto nics = [&](const std::string& names, const NicUsage& usage = {}) {
        const auto set = test::policies({"match: {comm: a}\naffinity: full\nnics: " + names + "\n"});
        return policy_nics(set.policies[0], machine, usage);
    };
    EXPECT_EQ(nics("[br0]"), Names{"eth0"});
    EXPECT_EQ(nics("auto", {{"p0", {{{"br0"}, 1}}}}), Names{"eth0"});
    EXPECT_EQ(nics("[veth1]"), Names{"veth1"}) << "the administrator's word";
    EXPECT_EQ(nics("[\"v*\"]"), Names{"veth3"}) << "which is no port";
    EXPECT_EQ(nics("[\"*\"]"), (Names{"eth0", "veth3"}));
    World world({"match: {comm: a}\naffinity: full\nnics: [br0]\n"}, machine, {});
    for (const auto& target : world.placements.queues)
        EXPECT_EQ(target.nic, "eth0") << to_string(target.subject);
}

} // namespace
} // namespace affinityd::planner
