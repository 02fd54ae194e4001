// SPDX-License-Identifier: Apache-2.0
// Lanes of several policies: where interrupts of few queues go, and what the birth of a worker moves.
#include "world.hpp"

#include <map>
#include <set>

namespace affinityd::planner {
namespace {

using test::World;

/// Eight CPUs without SMT in one node, and as many interfaces of so many queues.
machine::Machine eight(unsigned nics, unsigned queues) {
    machine::Machine machine;
    auto& topology = machine.topology;
    const CpuSet all = CpuSet::range(0, 7);
    topology.possible = topology.present = topology.online = topology.housekeeping = all;
    topology.packages.push_back(all);
    topology.nodes.push_back({0, all, 1U << 30, {}});
    topology.caches.push_back({3, topology::Cache::Type::unified, 1U << 20, all});
    for (const unsigned cpu : all) {
        topology.cores.push_back({cpu});
        topology.cpus.push_back({cpu, 0, {}, {}, static_cast<int>(cpu), 0, {}, {cpu}});
    }
    for (unsigned i = 0; i < nics; ++i) {
        test::add_nic(machine, "eth" + std::to_string(i), 0, queues, 40 + i * 10);
        machine.nics.back().local_cpus = all;
    }
    return machine;
}

std::vector<std::string> policies_of(unsigned count, const std::string& more = "") {
    std::vector<std::string> texts;
    for (unsigned i = 0; i < count; ++i)
        texts.push_back("match: {comm: a" + std::to_string(i) + "}\naffinity: full\nbind: cpu\n" + more +
                        "nics: [eth" + std::to_string(i) + "]\n");
    return texts;
}

/// Each policy has so many workers.
NicUsage workers(const std::vector<unsigned>& counts) {
    NicUsage usage;
    for (unsigned i = 0; i < counts.size(); ++i)
        usage["p" + std::to_string(i)][{"eth" + std::to_string(i)}] = counts[i];
    return usage;
}

/// CPU -> interrupts that go there.
std::map<std::string, int> arrivals(const Placements& placements) {
    std::map<std::string, int> cpus;
    for (const auto& target : placements.queues)
        if (std::holds_alternative<IrqMask>(target.subject)) ++cpus[target.wanted.to_string()];
    return cpus;
}

/// How many interrupts of other policies than this one go elsewhere than before.
int others_moved(const Placements& before, const Placements& after, const std::string& policy) {
    int moved = 0;
    for (const auto& target : after.queues) {
        if (target.policy == policy || !std::holds_alternative<IrqMask>(target.subject)) continue;
        const auto same = std::ranges::find(before.queues, target.subject, &QueueTarget::subject);
        moved += same == before.queues.end() || same->wanted != target.wanted ? 1 : 0;
    }
    return moved;
}

TEST(Lanes, InterruptsOfOneQueueEachGoToDifferentCores) {
    for (const std::string more : {"", "separate: true\n"})
        for (const unsigned tasks : {2U, 4U, 8U}) {
            const World world(policies_of(6, more), eight(6, 1), workers(std::vector<unsigned>(6, tasks)));
            EXPECT_GE(arrivals(world.placements).size(), tasks == 8 && !more.empty() ? 4U : 5U)
                << more << tasks;
        }
}

TEST(Lanes, InterruptsOfFourBusyServersDoNotMeetOnTwoCores) {
    const World world(policies_of(4), eight(4, 2), workers({8, 8, 8, 8}));
    const auto cpus = arrivals(world.placements);
    EXPECT_EQ(cpus.size(), 8U);
}

TEST(Lanes, ABirthMovesNoInterruptOfOthers) {
    const World world(policies_of(3), eight(3, 2), workers({2, 2, 2}));
    auto now = world.placements;
    const auto first = arrivals(now);
    for (const unsigned count : {3U, 4U, 5U, 4U, 3U, 2U}) {
        auto next = recompile(world.set, world.machine, workers({count, 2, 2}), now);
        EXPECT_EQ(others_moved(now, next, "p0"), 0) << count;
        now = std::move(next);
    }
    EXPECT_EQ(arrivals(now), first) << "who grew and shrank has its first lanes again";
}

TEST(Lanes, AMuchBetterOrderIsTakenAllTheSame) {
    // All came under policy while the machine had one CPU.
    auto small = eight(4, 1);
    small.topology.online = CpuSet{0};
    small.topology.cpus.resize(1);
    small.topology.cores.resize(1);
    const World world(policies_of(4), small, workers({1, 1, 1, 1}));
    EXPECT_EQ(arrivals(world.placements).size(), 1U);
    const auto next = recompile(world.set, eight(4, 1), workers({1, 1, 1, 1}), world.placements);
    EXPECT_EQ(arrivals(next).size(), 4U);
}

TEST(Lanes, AnInterfaceThatIsNamedIsNotTakenByOneThatOnlyListens) {
    World world({"match: {comm: a}\naffinity: full\nnics: auto\n",
                 "match: {comm: b}\naffinity: full\nnics: [eth0]\n"},
                eight(2, 2), {{"p0", {{{"eth0", "eth1"}, 1}}}, {"p1", {{{"eth0"}, 4}}}});
    for (const auto& target : world.placements.queues)
        EXPECT_EQ(target.policy, target.nic == "eth0" ? "p1" : "p0");
}

} // namespace
} // namespace affinityd::planner
