// SPDX-License-Identifier: Apache-2.0
// smt: pair: two virtual CPUs that a guest takes for siblings sit on two siblings of a core.
#include "lives.hpp"
#include "planner/place.hpp"

#include <fmt/format.h>

namespace affinityd::planner {
namespace {

using test::Dice;
using test::World;

struct VirtualCpu {
    int guest = 0;
    unsigned number = 0;
    inventory::Thread thread;
    CpuSet slot;
};

std::vector<VirtualCpu> guests(std::initializer_list<unsigned> sizes) {
    std::vector<VirtualCpu> all;
    int guest = 100;
    for (const unsigned size : sizes) {
        for (unsigned number = 0; number < size; ++number)
            all.push_back({guest,
                           number,
                           test::thread(guest + 1 + static_cast<int>(number),
                                        fmt::format("CPU {}/KVM", number), CpuSet::range(0, 63)),
                           {}});
        guest += 100;
    }
    return all;
}

/// Places each in turn, and does it as the kernel would.
void settle(World& world, std::vector<VirtualCpu>& all, const CpuSet* cpuset = nullptr) {
    for (auto& one : all) {
        const ProcessView process{
            .id = {one.guest, 1}, .policy = std::optional<std::size_t>(0), .cpuset = cpuset};
        const auto target =
            place(world.placements, world.assignments, process, {.thread = one.thread, .index = one.number});
        ASSERT_TRUE(target);
        one.slot = target->slot;
        one.thread.allowed = target->mask;
    }
}

/// Looks at those whose mate is there.
void expect_pairs(const World& world, const std::vector<VirtualCpu>& all, const std::string& about) {
    const auto& topology = world.machine.topology;
    for (const auto& one : all)
        for (const auto& other : all) {
            if (other.guest != one.guest || other.number != (one.number ^ 1U)) continue;
            const auto about_both =
                fmt::format("{}: vCPUs {} and {} of {} on {} and {}", about, one.number, other.number,
                            one.guest, one.thread.allowed.to_list(), other.thread.allowed.to_list());
            EXPECT_EQ(one.thread.allowed.count(), 1) << about_both;
            EXPECT_NE(one.thread.allowed, other.thread.allowed) << about_both;
            EXPECT_TRUE(topology.core_of(one.thread.allowed.first()).contains(other.thread.allowed.first()))
                << about_both;
        }
}

constexpr auto of_guests =
    "match: {comm: qemu}\nthreads:\n  - {name: \"CPU */KVM\", spread: core, smt: pair}\n";

TEST(Pairs, SitOnSiblingsACoreEachWhileThereAreCores) {
    World world({of_guests}, test::plain());
    auto all = guests({4, 4});
    settle(world, all);
    expect_pairs(world, all, "two guests on four cores");
    std::map<CpuSet, int> sizes;
    for (const auto& one : all)
        ++sizes[one.slot];
    EXPECT_EQ(sizes.size(), 4U);
}

TEST(Pairs, WithoutSiblingsEachHasACoreOfItsOwn) {
    World world({of_guests}, test::without_smt(8));
    auto all = guests({4, 4});
    settle(world, all);
    CpuSet used;
    for (const auto& one : all)
        used |= one.thread.allowed;
    EXPECT_EQ(used.count(), 8);
}

TEST(Pairs, OfWideCoresHaveTwoCpusEach) {
    auto machine = test::without_smt(8);
    auto& topology = machine.topology;
    topology.cores = {CpuSet::range(0, 3), CpuSet::range(4, 7)};
    for (auto& cpu : topology.cpus)
        cpu.smt = topology.cores[cpu.id / 4];
    World world({of_guests}, std::move(machine));
    auto all = guests({8});
    settle(world, all);
    expect_pairs(world, all, "cores of four");
    CpuSet used;
    for (const auto& one : all)
        used |= one.thread.allowed;
    EXPECT_EQ(used.count(), 8);
}

TEST(Pairs, IsolatedSiblingsAreAPair) {
    auto machine = test::plain();
    machine.topology.isolated = CpuSet::range(4, 7);
    World world({std::string("cpus: isolated\n") + of_guests}, std::move(machine));
    auto all = guests({4});
    settle(world, all);
    expect_pairs(world, all, "isolated");
}

TEST(Pairs, StayTogetherWhateverComesFirstAndWhateverChanges) {
    for (unsigned seed = 1; seed <= 500; ++seed) {
        Dice dice(seed);
        auto machine = test::invented(dice);
        const auto online = machine.topology.online;
        std::string text = of_guests;
        if (dice.once_in(2)) text += "together: " + dice.any({"node", "llc"}) + "\n";
        World world({text}, std::move(machine));
        auto all = guests({dice.within(1, 8), dice.within(1, 8), dice.within(1, 4)});
        const auto& cores = world.machine.topology.cores;
        const auto has_pair = [&](const CpuSet& cpus) {
            return std::ranges::any_of(cores, [&](const CpuSet& core) { return (core & cpus).count() > 1; });
        };
        const auto about = fmt::format("seed {} {}", seed, text);
        for (int round = 0; round < 6; ++round) {
            CpuSet cpuset;
            for (const unsigned cpu : online)
                if (dice.once_in(2)) cpuset.insert(cpu);
            const bool is_cut = round > 0 && dice.once_in(2) && has_pair(cpuset);
            if (round > 0 && dice.once_in(3)) { // a virtual CPU or two go, and come again
                for (int times = 0; times < 2; ++times) {
                    const auto& one = all[dice.upto(static_cast<unsigned>(all.size()) - 1)];
                    world.assignments.drop(one.thread.id);
                }
            }
            dice.shuffle(all);
            for (int pass = 0; pass < 4; ++pass)
                settle(world, all, is_cut ? &cpuset : nullptr);
            // Within one group of `together` the cpuset may have no pair.
            const bool is_any_pair = has_pair(is_cut ? cpuset : online);
            if (is_any_pair && (text.find("together") == std::string::npos || !is_cut))
                expect_pairs(world, all, about);
            for (const auto& one : all)
                EXPECT_TRUE((is_cut ? cpuset : online).contains(one.thread.allowed)) << about;
        }
    }
}

TEST(Pairs, OfGuestsThatComeOneAfterTheOtherShareNoCoreWhileAnotherHasNone) {
    for (unsigned seed = 1; seed <= 200; ++seed) {
        Dice dice(seed);
        World world({of_guests}, test::invented(dice));
        const auto& cores = world.machine.topology.cores;
        if (cores.front().count() < 2) continue;
        auto all = guests({2 * dice.within(1, 4), 2 * dice.within(1, 4), 2 * dice.within(1, 4)});
        settle(world, all);
        std::map<CpuSet, int> pairs;
        for (const auto& core : cores)
            pairs[core] = 0;
        for (const auto& one : all)
            pairs[one.slot] += one.number % 2 == 0 ? 1 : 0;
        int least = 100, most = 0;
        for (const auto& [slot, count] : pairs) {
            least = std::min(least, count);
            most = std::max(most, count);
        }
        EXPECT_LE(most - least, 1) << seed;
        EXPECT_EQ(pairs.size(), cores.size()) << seed;
    }
}

TEST(Pairs, AreNotTornApartToRelieveACore) {
    World world({of_guests}, test::plain());
    auto all = guests({2, 2, 2, 2, 2});
    settle(world, all);
    EXPECT_TRUE(crowdings(world.placements, world.assignments).empty());
}

} // namespace
} // namespace affinityd::planner
