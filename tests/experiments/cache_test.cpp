// SPDX-License-Identifier: Apache-2.0
#include "experiments/cache.hpp"
#include "experiments/frame.hpp"
#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "support/tree.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace affinityd::experiments {
namespace {

using topology::Cache;

/// Two sockets of one node each, in each two LLCs of 8 MiB with two cores without SMT.
topology::Topology four_llcs() {
    topology::Topology machine;
    machine.online = machine.present = CpuSet::range(0, 7);
    machine.packages = {CpuSet::range(0, 3), CpuSet::range(4, 7)};
    for (unsigned node = 0; node < 2; ++node)
        machine.nodes.push_back({node, machine.packages[node], {}, {}});
    for (unsigned cpu = 0; cpu < 8; ++cpu) {
        machine.cpus.push_back(
            {cpu, static_cast<int>(cpu / 4), {}, {}, static_cast<int>(cpu), cpu / 4, {}, {cpu}});
        machine.caches.push_back({1, Cache::Type::data, 32U << 10U, CpuSet{cpu}});
        machine.caches.push_back({1, Cache::Type::instruction, 64U << 10U, CpuSet{cpu}});
    }
    for (unsigned cpu = 0; cpu < 8; ++cpu)
        machine.caches.push_back({2, Cache::Type::unified, 512U << 10U, CpuSet{cpu}});
    for (unsigned llc = 0; llc < 4; ++llc)
        machine.caches.push_back({3, Cache::Type::unified, 8U << 20U, CpuSet::range(llc * 2, llc * 2 + 1)});
    return machine;
}

TEST(CacheSeats, ReachAllPlacesWhereTheMachineHasThem) {
    const auto seats = cache_seats(four_llcs(), CpuSet::range(0, 7)).value();
    EXPECT_EQ(seats.home, 0U);
    EXPECT_EQ(seats.group, 1U);
    EXPECT_EQ(seats.other_llc, 2U);
    EXPECT_EQ(seats.other_node, 4U);
    EXPECT_TRUE(seats.refused.empty());
    EXPECT_EQ(seats.sizes.first, 32U << 10U);
    EXPECT_EQ(seats.sizes.own, 512U << 10U);
    EXPECT_EQ(seats.sizes.last, 8U << 20U);
    EXPECT_EQ(cache_seats(four_llcs(), CpuSet{0, 4, 5}).value().home, 4U)
        << "from which two places can be reached";
}

TEST(CacheSeats, SayWhatIsMissing) {
    const auto one_llc = cache_seats(four_llcs(), CpuSet{2, 3}).value();
    EXPECT_EQ(one_llc.group, 3U);
    ASSERT_EQ(one_llc.refused.size(), 1U);
    EXPECT_NE(one_llc.refused[0].find("low affinity is not measured: CPUs 2-3"), std::string::npos);
    const auto apart = cache_seats(four_llcs(), CpuSet{2, 6}).value();
    EXPECT_FALSE(apart.group);
    EXPECT_EQ(apart.other_node, 6U);
    ASSERT_EQ(apart.refused.size(), 2U);
    EXPECT_EQ(apart.refused[1], "\"other LLC\" is not measured: no CPU of another last-level cache of CPU "
                                "2's node is among CPUs 2,6, which may be used here")
        << "that node has another one";
    EXPECT_TRUE(cache_seats(four_llcs(), CpuSet{3}).has_value()) << "one CPU can lose its cache, too";
    EXPECT_EQ(cache_seats(four_llcs(), {}).error(), Refusal::one_cpu);
    auto silent = four_llcs();
    silent.caches.clear();
    EXPECT_EQ(cache_seats(silent, CpuSet::range(0, 7)).error(), Refusal::no_caches);
    EXPECT_TRUE(cache_seats(four_llcs(), CpuSet::range(0, 7)).value().are_sizes_recorded);
}

TEST(CacheSeats, GoByOtherSizesWhereNoneAreRecorded) {
    auto silent = four_llcs();
    silent.caches.clear();
    const CacheSizes otherwise{48U << 10U, 1U << 20U, 32U << 20U};
    const auto seats = cache_seats(silent, CpuSet::range(0, 7), otherwise).value();
    EXPECT_FALSE(seats.are_sizes_recorded);
    EXPECT_EQ(seats.sizes.own, otherwise.own);
    EXPECT_EQ(cache_seats(four_llcs(), CpuSet::range(0, 7), otherwise).value().sizes.last, 8U << 20U);
}

TEST(SizesOfTheCLibrary, AscendOrAreNotTold) {
    const auto sizes = sizes_of_c_library();
    EXPECT_LE(sizes.first, sizes.own);
    EXPECT_LE(sizes.own, sizes.last);
    EXPECT_EQ(sizes.first == 0, sizes.last == 0);
    EXPECT_NE(remark_of_c_library({1U << 10U, 1U << 20U, 32U << 20U}).find("32 MiB"), std::string::npos);
}

TEST(Footprints, GoFromHalfTheFirstLevelToBeyondTheLast) {
    EXPECT_EQ(footprints_for({32U << 10U, 512U << 10U, 8U << 20U}),
              (std::vector<std::uint64_t>{16U << 10U, 32U << 10U, 256U << 10U, 512U << 10U, 2U << 20U,
                                          4U << 20U, 8U << 20U, 16U << 20U}));
    EXPECT_EQ(footprints_for({32U << 10U, 32U << 10U, 1U << 20U}).front(), 16U << 10U);
    EXPECT_EQ(footprints_for({1, 1, 1}), (std::vector<std::uint64_t>{256}))
        << "a machine that tells nonsense";
    EXPECT_LE(footprints_for({32U << 10U, 1U << 20U, std::uint64_t{1} << 40U}).back(), most_footprint);
    EXPECT_EQ(bytes_words(24 << 10), "24 KiB");
    EXPECT_EQ(bytes_words(3U << 19U), "1.5 MiB");
    EXPECT_EQ(bytes_words(1008U << 10U), "1008 KiB");
    EXPECT_EQ(bytes_words(std::uint64_t{1} << 30U), "1 GiB");
    EXPECT_EQ(bytes_words(std::uint64_t{4} << 40U), "4096 GiB");
}

constexpr std::uint64_t mib = 1U << 20U;

TEST(Polluter, IsEightTimesTheLastLevelWhereThatMuchCanBeHad) {
    const CacheSizes sizes{32U << 10U, mib, 32 * mib};
    const auto enough = polluter_for(sizes, 4096 * mib);
    EXPECT_EQ(enough.bytes, 256 * mib);
    EXPECT_EQ(remark_of(enough), "");
    EXPECT_EQ(polluter_for(sizes, std::nullopt).bytes, 256 * mib) << "not known how much can be had";
    const auto less = polluter_for(sizes, 128 * mib);
    EXPECT_EQ(less.bytes, 64 * mib) << "half of it: the working sets need the other one";
    EXPECT_EQ(remark_of(less), "the polluter reads 64 MiB, as 128 MiB of memory could be had, and it takes "
                               "256 MiB, 8 times the last level, to empty that: what it costs to lose the "
                               "last level may be more than is shown");
    EXPECT_EQ(polluter_for(sizes, 0).bytes, 2 * mib) << "twice what the core has for itself";
    const auto large = polluter_for({32U << 10U, 2 * mib, 256 * mib}, 1'000'000 * mib);
    EXPECT_EQ(large.bytes, most_polluter);
    EXPECT_NE(remark_of(large).find("reads 1 GiB, the most that this experiment takes"), std::string::npos);
}

TEST(Polluter, LeavesOutWorkingSetsForWhichItLeavesNoMemory) {
    const CacheSizes sizes{48U << 10U, mib, 32 * mib};
    for (const std::uint64_t available : {0U, 20U, 60U, 118U, 170U, 200U, 300U, 400U}) {
        SCOPED_TRACE(available);
        const auto polluter = polluter_for(sizes, available * mib);
        auto footprints = footprints_for(sizes);
        const auto all = footprints.size();
        const auto words = take_out_too_large(footprints, polluter);
        EXPECT_EQ(words.empty(), footprints.size() == all);
        ASSERT_FALSE(footprints.empty());
        EXPECT_LE(polluter.bytes + footprints.back(), std::max<std::uint64_t>(available, 4) * mib);
        EXPECT_EQ(words.empty(), available > 171);
        if (available != 118) continue;
        EXPECT_EQ(words,
                  "there is no memory for working sets of 64 MiB beside the polluter of 59 MiB, as 118 MiB "
                  "could be had");
    }
    std::vector<std::uint64_t> any{512 * mib};
    EXPECT_TRUE(take_out_too_large(any, polluter_for(sizes, std::nullopt)).empty()) << "nobody knows";
}

/// A machine with so much available, and a control group of this program.
struct MemoryTree {
    test::Tree tree;
    explicit MemoryTree(std::string_view group) {
        tree.file("proc/meminfo", "MemTotal:  8388608 kB\nMemFree:  1024 kB\nMemAvailable:  4194304 kB\n");
        tree.file("proc/self/cgroup", group);
    }
    [[nodiscard]] std::optional<std::uint64_t> available() const {
        return available_memory(*host::Root::open(tree.path()));
    }
    void limit(const std::string& folder, std::string_view most, std::string_view current) const {
        tree.file("sys/fs/cgroup/" + folder + "memory.max", most);
        tree.file("sys/fs/cgroup/" + folder + "memory.current", current);
    }
};

TEST(AvailableMemory, IsWhatTheKernelAndTheControlGroupsLeave) {
    const MemoryTree machine("4:memory:/old\n0::/a.slice/b.scope\n");
    EXPECT_EQ(machine.available(), 4096 * mib) << "not MemFree: what files take can be had";
    machine.limit("a.slice/b.scope/", "max\n", "1000\n");
    EXPECT_EQ(machine.available(), 4096 * mib);
    machine.limit("a.slice/", "1073741824\n", "268435456\n");
    EXPECT_EQ(machine.available(), 768 * mib) << "a group above it has a limit";
    machine.limit("a.slice/b.scope/", "314572800\n", "209715200\n");
    EXPECT_EQ(machine.available(), 100 * mib);
    machine.tree.file("sys/fs/cgroup/a.slice/b.scope/memory.stat", "file 9\ninactive_file 104857600\n");
    EXPECT_EQ(machine.available(), 200 * mib) << "files that nobody reads any more make room";
    machine.tree.file("sys/fs/cgroup/a.slice/b.scope/memory.high", "157286400\n");
    EXPECT_EQ(machine.available(), 50 * mib);
    machine.limit("a.slice/b.scope/", "1\n", "209715200\n");
    EXPECT_EQ(machine.available(), 0U);
}

TEST(AvailableMemory, InAContainerIsWhatItsRootLeaves) {
    const MemoryTree container("0::/\n");
    container.limit("", "536870912\n", "0\n");
    EXPECT_EQ(container.available(), 512 * mib);
    const test::Tree silent;
    EXPECT_EQ(available_memory(*host::Root::open(silent.path())), std::nullopt);
    EXPECT_GT(available_memory(*host::Root::open()).value(), 0U) << "of this machine";
}

const CacheSeats all_places{
    .home = 0, .group = 1, .other_llc = 2, .other_node = 4, .sizes = {32U << 10U, 512U << 10U, 8U << 20U}};

/// Losses by place: kept, displaced, emptied, group, other_llc, other_node.
CacheResult times_with(const std::array<double, 6>& loss, std::size_t rounds = 8) {
    CacheResult times;
    times.how.footprints = {16U << 10U, 256U << 10U, 2U << 20U};
    times.how.quanta_ms = {2};
    for (const auto footprint : times.how.footprints)
        for (const Place place : places) {
            CacheCase cell{{}, footprint, 2, place};
            for (std::size_t round = 0; round < rounds; ++round)
                cell.seconds.push_back(0.002 * (1 + loss[static_cast<std::size_t>(place)]) *
                                       (1 + 0.001 * (static_cast<double>(round % 3) - 1)));
            times.cases.push_back(cell);
        }
    return times;
}

CacheResult read(CacheResult result, const CacheSeats& seats, bool is_quiet = true) {
    read_cache(result, seats, is_quiet);
    return result;
}

TEST(CacheReading, FindsTheWidthThatIsRewarded) {
    const auto width = [](const std::array<double, 6>& loss) {
        return read(times_with(loss), all_places).verdict;
    };
    EXPECT_EQ(width({0, 0.3, 0.5, 0, 0.11, 0.27}), "bind: llc") << "the document's machine";
    EXPECT_EQ(width({0, 0, 0, 0.05, 0.2, 0.3}), "bind: core");
    EXPECT_EQ(width({0, 0, 0, 0, 0, 0.3}), "bind: node");
    EXPECT_EQ(width({0, 0, 0, 0, 0, 0}), "not known");
    EXPECT_EQ(width({0, 0, 0, 0.005, 0.005, 0.005}), "not known") << "shown, but too little to care";
    EXPECT_EQ(width({0, 0, 0, -0.1, -0.1, -0.1}), "not known");
    EXPECT_EQ(read(times_with({0, 0, 0, 0.5, 0.5, 0.5}, 3), all_places).verdict, "not known");
    EXPECT_EQ(read(times_with({0, 0.3, 0.5, 0, 0.11, 0.27}), all_places, false).verdict, "not known")
        << "a busy machine";
    CacheSeats nowhere = all_places;
    nowhere.group = nowhere.other_llc = nowhere.other_node = std::nullopt;
    EXPECT_EQ(read(times_with({0, 1, 1, 1, 1, 1}), nowhere).verdict, "not known");
}

TEST(CacheReading, CountsWhatFitsIntoTheLostCacheOnly) {
    auto times = times_with({0, 0, 0, 0, 0.11, 0});
    for (auto& cell : times.cases) // noise of a shared cache
        if (cell.place == Place::group && cell.footprint == 2U << 20U)
            for (auto& time : cell.seconds)
                time *= 3;
    const auto reading = read(times, all_places);
    EXPECT_EQ(reading.verdict, "bind: llc") << "2 MiB do not fit into a core's own 512 KiB";
    const auto loss = std::ranges::find(reading.losses, Place::group, &PlaceLoss::place);
    EXPECT_EQ(loss->of, 2U);
    const auto other = std::ranges::find(reading.losses, Place::other_llc, &PlaceLoss::place);
    EXPECT_EQ(other->of, 3U);
    EXPECT_EQ(other->costly, 3U);
    EXPECT_NEAR(other->mean.change.estimate, 0.11, 1e-6);
    EXPECT_NEAR(other->most.change.estimate, 0.11, 1e-6);
    EXPECT_NE(reading.meaning.find("bind: llc, the default, is what this machine rewards"),
              std::string::npos);
}

TEST(CacheReading, TellsTheMostAsExactlyAsTheAverage) {
    CacheSeats seats = all_places;
    seats.group = seats.other_node = std::nullopt;
    const auto reading = read(times_with({0, 0, 0, 0, 0.004, 0}), seats);
    EXPECT_EQ(reading.summary, "not known; 2 ms, other LLC: 0.4 % (at most 0.4 %)");
    const auto costly = read(times_with({0, 0, 0, 0, 0.114, 0}), seats);
    ASSERT_FALSE(costly.findings.empty());
    EXPECT_NE(
        costly.findings.back().find("11.4 % (11.4 to 11.4) longer on average, 11.4 % (11.4 to 11.4) at most"),
        std::string::npos)
        << costly.findings.back();
}

/// The paragraph for a machine, or a choice of CPUs, that lacks some of the places.
std::string meaning_of(const std::array<double, 6>& loss, const CacheSeats& seats) {
    auto times = times_with(loss);
    std::erase_if(times.cases, [&](const CacheCase& cell) { return !seats.of(cell.place); });
    return read(times, seats).meaning;
}

TEST(CacheReading, SpeaksOfNoMoveThatWasNotMeasured) {
    CacheSeats no_group = all_places, no_llc = all_places, no_node = all_places;
    no_group.group.reset();
    no_llc.other_llc.reset();
    no_node.other_node.reset();
    EXPECT_EQ(meaning_of({0, 0, 0, 0, 0.2, 0.3}, no_group),
              "bind: llc, the default, is what this machine rewards: a move to another last-level cache "
              "costs something (every 2 ms). Moves to another core of the same last-level cache were not "
              "measured.");
    EXPECT_EQ(meaning_of({0, 0, 0, 0, 0, 0.3}, no_llc),
              "bind: node is narrow enough here, as far as this shows: a move to another node was shown to "
              "cost something (every 2 ms). Moves to another last-level cache of the node were not measured. "
              "bind: llc, the default, does no harm.");
    const std::string head =
        "No verdict: no move was shown to cost more than 1 %. Keep bind: llc, the default.";
    EXPECT_EQ(meaning_of({}, all_places), head);
    EXPECT_EQ(meaning_of({}, no_node), head + " Moves to another node were not measured.");
}

TEST(CacheReading, OfNoiseAloneHardlyEverShowsAnything) {
    constexpr int experiments = 1000;
    std::mt19937 random(7);
    std::lognormal_distribution<double> noise(0, 0.05);
    int claims = 0;
    for (int i = 0; i < experiments; ++i) {
        CacheResult times;
        times.how.footprints = {16U << 10U, 64U << 10U, 256U << 10U};
        times.how.quanta_ms = {2, 10, 200};
        for (const auto footprint : times.how.footprints)
            for (const double quantum : times.how.quanta_ms)
                for (const Place place : places) {
                    CacheCase cell{{}, footprint, quantum, place};
                    for (int round = 0; round < 8; ++round)
                        cell.seconds.push_back(quantum * noise(random));
                    times.cases.push_back(cell);
                }
        const auto reading = read(times, all_places);
        const auto is_shown = [](const measure::Comparison& longer) {
            return longer.verdict == measure::Verdict::more || longer.verdict == measure::Verdict::less;
        };
        claims += std::ranges::any_of(reading.cases, is_shown, &CacheCase::longer) ||
                  std::ranges::any_of(reading.losses, is_shown, &PlaceLoss::mean);
    }
    EXPECT_LE(claims, experiments * 6 / 100) << "of all cells and averages, any at all";
}

TEST(MeasuresCache, OnThisMachine) {
    const auto own = host::get_affinity(0).value();
    CacheSeats seats{.home = own.first(),
                     .group = own.last(),
                     .other_llc = {},
                     .other_node = {},
                     .sizes = {4096, 8192, 65536}};
    experiments::Run run;
    const auto times = measure_cache(
        seats,
        {.quanta_ms = {0.2, 0.5}, .rounds = 2, .footprints = {2048, 16384}, .polluter_bytes = 8 * 65536},
        run);
    ASSERT_TRUE(times) << times.error().to_string();
    EXPECT_TRUE(times->is_whole);
    EXPECT_EQ(times->cases.size(), 2U * 2 * 4);
    for (const auto& cell : times->cases)
        EXPECT_EQ(cell.seconds.size(), 2U);
    EXPECT_EQ(run.done(), run.all());
    seats.group = CpuSet::max_cpu;
    EXPECT_FALSE(measure_cache(seats, {.quanta_ms = {0.2}, .rounds = 1, .footprints = {2048}}, run));
    run.stop();
    seats.group.reset();
    EXPECT_FALSE(
        measure_cache(seats, {.quanta_ms = {10000}, .rounds = 99, .footprints = {2048}}, run)->is_whole);
}

} // namespace
} // namespace affinityd::experiments
