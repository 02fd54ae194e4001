// SPDX-License-Identifier: Apache-2.0
// Real machines' latencies: each pair gets the two free CPUs that are closest to each other.
#include "recorded.hpp"
#include "world.hpp"

#include <fstream>
#include <limits>
#include <random>
#include <sstream>

namespace affinityd::planner {
namespace {

constexpr int pairs_per_machine = 8;

std::string slurp(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

/// The least latency between two of these CPUs.
double least(const topology::Latencies& latencies, const CpuSet& free) {
    double best = std::numeric_limits<double>::max();
    for (const unsigned a : free)
        for (const unsigned b : free)
            if (const auto ns = latencies.ns(a, b); ns && b < a) best = std::min(best, *ns);
    return best;
}

/// The first two threads of a process that begins now, placed one after the other.
std::pair<unsigned, unsigned> place_pair(test::World& world, int pid) {
    auto first = test::thread(pid, "a", world.placements.online);
    auto second = test::thread(pid + 1, "a", world.placements.online);
    const ProcessView process{.id = first.id, .policy = 0};
    world.apply(first, plan_thread(world.planning(), process, {first, 0}));
    world.apply(second, plan_thread(world.planning(), process, {second, 1}));
    return {first.allowed.first(), second.allowed.first()};
}

TEST(CompanyCorpus, EachPairGetsTheClosestFreeCpus) {
    std::size_t machines = 0, checked = 0;
    const auto folder = test::setting("AFFINITYD_LATENCIES", "AFFINITYD_LATENCIES_DEFAULT");
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
        if (file.path().extension() != ".csv") continue;
        const auto latencies = topology::latencies_from_csv(slurp(file.path()));
        ASSERT_TRUE(latencies) << file.path();
        auto machine = test::without_smt(static_cast<unsigned>(latencies->cpus().size()));
        machine.latencies.matrix = std::make_shared<const machine::LatencyMatrix>(*latencies);
        test::World world(
            {"match: {comm: a}\ntogether: measured\n", "match: {comm: b}\nspread: cpu\nbind: cpu\n"},
            machine);
        CpuSet free = machine.topology.online;
        std::mt19937 random(static_cast<unsigned>(free.count()));
        for (int pair = 0; pair < pairs_per_machine && free.count() > 1; ++pair) {
            const auto expected = least(*latencies, free);
            const auto [a, b] = place_pair(world, 100 + pair * 10);
            EXPECT_TRUE(free.contains(a) && free.contains(b) && a != b)
                << file.path() << " " << a << " " << b;
            EXPECT_DOUBLE_EQ(latencies->ns(a, b).value_or(0), expected)
                << file.path() << " " << a << " " << b;
            free -= CpuSet{a, b};
            ++checked;
            if (free.count() < 4) continue;
            // Somebody else takes a CPU.
            auto other = test::thread(10'000 + pair, "b", CpuSet{free.to_vector()[random() % free.count()]});
            world.settle(other, 1);
            free -= other.allowed;
        }
        ++machines;
    }
    EXPECT_GE(machines, 20U);
    std::printf("measured: %zu pairs on %zu machines\n", checked, machines);
}

} // namespace
} // namespace affinityd::planner
