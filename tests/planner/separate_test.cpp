// SPDX-License-Identifier: Apache-2.0
// Interrupts apart from the workers: room for them beside other policies, and who moves when workers come.
#include "lives.hpp"
#include "world.hpp"

#include <algorithm>
#include <map>

namespace affinityd::planner {
namespace {

using test::Dice;
using test::World;

std::string server(const std::string& nic, bool separate = true) {
    return "match: {comm: a}\naffinity: full\nnics: [" + nic +
           "]\nspread: core\nbind: core\nseparate: " + (separate ? "true\n" : "false\n");
}

/// Two cache groups of eight cores in one node.
machine::Machine sixteen() {
    auto machine = test::without_smt(16);
    auto& topology = machine.topology;
    topology.nodes = {{0, topology.online, 1U << 30, {}}};
    topology.packages = {topology.online};
    for (auto& cpu : topology.cpus)
        cpu.node = 0;
    return machine;
}

/// An interface that is near all CPUs alike.
void add_nic(machine::Machine& machine, const std::string& name, unsigned queues, unsigned first_irq) {
    test::add_nic(machine, name, 0, queues, first_irq);
    auto& nic = machine.nics.back();
    nic.ifindex = static_cast<unsigned>(machine.nics.size()) + 1;
    nic.node.reset();
    nic.local_cpus = machine.topology.online;
}

/// How many interrupts are on the core of a lane: of their own policy, or else of another one.
struct Mixed {
    std::size_t own = 0, others = 0;
};

Mixed mixed(const Placements& placements, const topology::Topology& topology) {
    std::map<std::string, CpuSet> cores;
    CpuSet all;
    for (const auto& policy : placements.policies)
        for (const auto& nic : policy.nics)
            for (const auto& seat : nic.seats() > 0 ? test::seats(nic) : std::vector<CpuSet>{})
                for (const unsigned cpu : seat) {
                    cores[policy.policy->name] |= topology.core_of(cpu);
                    all |= topology.core_of(cpu);
                }
    Mixed count;
    for (const auto& target : placements.queues) {
        if (!std::holds_alternative<machine::IrqMask>(target.subject)) continue;
        const bool is_own = target.wanted.cpus().intersects(cores[target.policy]);
        count.own += is_own ? 1U : 0U;
        count.others += !is_own && target.wanted.cpus().intersects(all) ? 1U : 0U;
    }
    return count;
}

TEST(Separate, PoliciesWhoseProgramsDoNotRunTakeNoRoom) {
    for (const unsigned others : {0U, 7U, 8U, 20U})
        for (const unsigned workers : {4U, 8U, 12U, 14U}) {
            auto machine = sixteen();
            add_nic(machine, "eth0", workers, 30);
            std::vector<std::string> texts{server("eth0")};
            for (unsigned i = 0; i < others; ++i)
                texts.push_back("match: {comm: idle" + std::to_string(i) + "}\n");
            const World world(texts, machine, {{"p0", {{{"eth0"}, workers}}}});
            EXPECT_EQ(mixed(world.placements, machine.topology).own, 0U) << others << " " << workers;
            EXPECT_TRUE(world.placements.problems.empty()) << others << " " << workers;
        }
}

TEST(Separate, PoliciesOfOneCacheGroupLeaveItsRoom) {
    auto machine = sixteen();
    add_nic(machine, "eth0", 12, 30);
    std::vector<std::string> texts{server("eth0")};
    for (unsigned i = 0; i < 8; ++i)
        texts.push_back("match: {comm: idle" + std::to_string(i) + "}\ncpus: 0-7\n");
    const World world(texts, machine, {{"p0", {{{"eth0"}, 12}}}});
    EXPECT_EQ(mixed(world.placements, machine.topology).own, 0U);
    EXPECT_TRUE(world.placements.problems.empty());
}

/// The changes from one to the next, of the first interface of the first policy.
struct MovedAway {
    std::size_t interrupts = 0, lanes = 0;
};

MovedAway moved(const Placements& before, const Placements& after) {
    MovedAway count;
    for (const auto& target : before.queues) {
        if (!std::holds_alternative<machine::IrqMask>(target.subject)) continue;
        const auto same = std::ranges::find(after.queues, target.subject, &QueueTarget::subject);
        count.interrupts += same == after.queues.end() || same->wanted != target.wanted ? 1U : 0U;
    }
    const auto old = test::seats(before.policies.front().nics.front());
    const auto now = test::seats(after.policies.front().nics.front());
    for (std::size_t i = 0; i < std::min(old.size(), now.size()); ++i)
        count.lanes += old[i] != now[i] ? 1U : 0U;
    return count;
}

TEST(Separate, ABirthMovesNoOtherTask) {
    unsigned births = 0, full = 0;
    for (unsigned seed = 1; seed <= 400; ++seed) {
        Dice dice(seed);
        auto machine = test::invented(dice);
        const auto cores = static_cast<unsigned>(machine.topology.cores.size());
        const unsigned workers = dice.within(1, std::max(1U, cores / 2));
        if (workers + 1 > cores) continue;
        add_nic(machine, "eth0", workers + 1, 100); // the newcomer is given a queue of the first worker
        const World world({server("eth0")}, machine, {{"p0", {{{"eth0"}, workers}}}});
        const auto next =
            test::recompile(world.set, machine, {{"p0", {{{"eth0"}, workers + 1}}}}, world.placements);
        const bool has_room = workers * 2 < cores; // else the newcomer is given the core of an interrupt
        const auto count = moved(world.placements, next);
        EXPECT_LE(count.interrupts, has_room ? 1U : 2U) << "seed " << seed;
        EXPECT_EQ(count.lanes, 0U) << "seed " << seed;
        ++(has_room ? births : full);
    }
    EXPECT_GT(births, 100U);
    EXPECT_GT(full, 10U);
}

TEST(Separate, WithoutAChangeNoTaskMovesThoughAllCoresAreWorkers) {
    for (unsigned seed = 1; seed <= 300; ++seed) {
        Dice dice(seed);
        auto machine = test::invented(dice);
        const unsigned workers = dice.within(1, static_cast<unsigned>(machine.topology.cores.size()));
        add_nic(machine, "eth0", dice.once_in(3) ? dice.within(1, workers) : workers, 100);
        const NicUsage usage{{"p0", {{{"eth0"}, workers}}}};
        const World world({server("eth0")}, machine, usage);
        const auto count =
            moved(world.placements, test::recompile(world.set, machine, usage, world.placements));
        EXPECT_EQ(count.interrupts + count.lanes, 0U) << "seed " << seed;
    }
}

TEST(Separate, InterruptsThatCanStayDoSoBeforeOthersChoose) {
    auto machine = sixteen();
    add_nic(machine, "eth0", 3, 30);
    const World world({server("eth0")}, machine, {{"p0", {{{"eth0"}, 3}}}});
    const auto& before = world.placements.policies.front().nics.front();
    ASSERT_EQ(test::interrupts(before), (std::vector<unsigned>{3, 4, 5}));
    machine.topology.online -= CpuSet{3};
    const auto next = test::recompile(world.set, machine, {{"p0", {{{"eth0"}, 3}}}}, world.placements);
    const auto& after = next.policies.front().nics.front();
    EXPECT_EQ(test::interrupts(after), (std::vector<unsigned>{6, 4, 5}));
}

TEST(Separate, InterruptsOnTheCoreOfAnyPolicysWorkerAreTold) {
    unsigned told = 0;
    for (unsigned seed = 1; seed <= 600; ++seed) {
        Dice dice(seed);
        auto machine = test::invented(dice);
        const auto cores = static_cast<unsigned>(machine.topology.cores.size());
        const unsigned a = dice.within(1, std::max(1U, cores / 2)),
                       b = dice.within(1, std::max(1U, cores / 2));
        add_nic(machine, "eth0", a, 100);
        add_nic(machine, "eth1", b, 200);
        const World world({server("eth0"), server("eth1")}, machine,
                          {{"p0", {{{"eth0"}, a}}}, {"p1", {{{"eth1"}, b}}}});
        const auto count = mixed(world.placements, machine.topology);
        EXPECT_EQ(count.own + count.others > 0, !world.placements.problems.empty()) << "seed " << seed;
        told += count.others > 0 ? 1U : 0U;
    }
    EXPECT_GT(told, 10U);
}

TEST(Separate, APolicyThatComesLaterToTheCoresOfInterruptsIsTold) {
    auto machine = sixteen();
    add_nic(machine, "eth0", 4, 30);
    add_nic(machine, "eth1", 16, 60);
    const NicUsage usage{{"p0", {{{"eth0"}, 4}}}, {"p1", {{{"eth1"}, 16}}}};
    const World world({server("eth0"), server("eth1", false)}, machine, usage);
    ASSERT_EQ(world.placements.problems.size(), 1U);
    EXPECT_EQ(world.placements.problems.front().policy, "p0");
    EXPECT_EQ(world.placements.problems.front().message,
              "separate: interrupts of 4 of its 4 lanes are on cores of workers of other policies or "
              "interfaces");
    const auto next = test::recompile(world.set, machine, usage, world.placements);
    EXPECT_EQ(moved(world.placements, next).interrupts, 0U);
    const World idle({server("eth0"), server("eth1", false)}, machine, {{"p0", {{{"eth0"}, 4}}}});
    EXPECT_TRUE(idle.placements.problems.empty()) << "no worker is known there";
}

} // namespace
} // namespace affinityd::planner
