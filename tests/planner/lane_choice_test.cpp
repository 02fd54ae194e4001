// SPDX-License-Identifier: Apache-2.0
// Which cores become lanes, and what it costs to choose them on a large machine.
#include "lives.hpp"
#include "planner/lanes.hpp"
#include "world.hpp"

#include <ctime>
#include <limits>
#include <optional>

namespace affinityd::planner {
namespace {

using test::Dice;

/// Which of the kept lanes it is; their number if none.
std::size_t place_among(std::span<const Slot> kept, const Slot& slot) {
    const auto found =
        std::ranges::find_if(kept, [&](const Slot& other) { return other.cpus.intersects(slot.cpus); });
    return static_cast<std::size_t>(found - kept.begin());
}

/// The same choice in the plainest way: all that are left are looked at for each lane.
std::vector<Slot> chosen_plainly(const ResolvedPolicy& resolved, const machine::Machine& machine,
                                 const LaneHome& home, const LaneDemand& demand, const LaneLoad& load) {
    auto placement = resolved.placement;
    placement.spread = policy::Spread::core;
    CpuLoad expected = load.expected;
    std::vector<Slot> lanes;
    for (const CpuSet* cpus : {&home.first, &home.then}) {
        if (cpus->empty()) continue;
        auto candidates = make_slots(machine.topology, placement, *cpus, {});
        while (lanes.size() < demand.lanes && !candidates.empty()) {
            const auto best = std::ranges::min_element(candidates, {}, [&](const Slot& slot) {
                const auto place = place_among(demand.kept, slot);
                const auto there = expected.on_core(slot.cpus.first());
                const Weight bonus = place < demand.kept.size() ? much : 0;
                return demand.may_move ? std::tuple(there - bonus, place, Weight{0})
                                       : std::tuple(Weight{0}, place, there);
            });
            expected.add({best->cpus.first()}, one_cpu);
            lanes.push_back(*best);
            candidates.erase(best);
        }
    }
    std::ranges::sort(lanes, {}, [](const Slot& slot) { return slot.cpus.first(); });
    std::vector<std::optional<Slot>> places(lanes.size());
    std::vector<Slot> others;
    for (const auto& lane : lanes) {
        const auto place = place_among(demand.kept, lane);
        const bool is_free = place < std::min(places.size(), demand.kept.size()) && !places[place];
        if (is_free)
            places[place] = lane;
        else
            others.push_back(lane);
    }
    auto other = others.begin();
    for (auto& place : places)
        if (!place) place = *other++;
    std::vector<Slot> ordered;
    for (const auto& place : places)
        ordered.push_back(*place);
    return ordered;
}

std::string names(const std::vector<Slot>& lanes) {
    std::string text;
    for (const auto& lane : lanes)
        text += lane.cpus.to_list() + " ";
    return text;
}

CpuSet some(Dice& dice, const CpuSet& all) {
    CpuSet cpus{all.to_vector()[dice.upto(static_cast<unsigned>(all.count()) - 1)]};
    for (const unsigned cpu : all)
        if (!dice.once_in(3)) cpus.insert(cpu);
    return cpus;
}

TEST(LaneChoice, IsThatOfThePlainSearchOnThreeHundredMachines) {
    const auto set = test::policies({"match: {comm: a}\naffinity: full\nbind: core\nnics: [eth0]\n",
                                     "match: {comm: b}\naffinity: full\nbind: cpu\nnics: [eth0]\n"});
    for (unsigned seed = 1; seed <= 300; ++seed) {
        Dice dice(seed);
        const auto machine = test::invented(dice);
        const auto& online = machine.topology.online;
        ResolvedPolicy resolved{.policy = &set.policies[dice.upto(1)]};
        resolved.placement = resolved.policy->placement;
        LaneHome home{.first = some(dice, online)};
        home.then = online - home.first;
        std::vector<Slot> kept; // some may be on one core, or have lost a sibling since
        for (unsigned i = dice.upto(6); i > 0; --i)
            kept.push_back(
                {some(dice, machine.topology
                                .cores[dice.upto(static_cast<unsigned>(machine.topology.cores.size()) - 1)]),
                 {}});
        LaneLoad load{CpuLoad(machine.topology), CpuLoad(machine.topology), CpuLoad(machine.topology), {}};
        for (const unsigned cpu : online)
            load.expected.add({cpu}, dice.upto(4) * (one_cpu / 4));
        const unsigned lanes = dice.within(1, static_cast<unsigned>(online.count()) + 2);
        const LaneDemand demand{lanes, lanes, kept, dice.once_in(2)};
        EXPECT_EQ(names(choose_lanes(resolved, machine, home, demand, load)),
                  names(chosen_plainly(resolved, machine, home, demand, load)))
            << "seed " << seed;
    }
}

double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// A NIC that serves a worker on each of so many cores, until one of them dies: the least of some times that
/// this was worked out in.
double cost_of_a_death(unsigned cores, int times) {
    auto machine = test::without_smt(cores);
    test::add_nic(machine, "eth0", 0, 64, 40);
    machine.nics.back().node.reset();
    machine.nics.back().local_cpus = machine.topology.online;
    const auto set = test::policies({"match: {comm: a}\naffinity: full\nnics: [eth0]\n"});
    const auto before = compile(set, machine, {{"p0", {{{"eth0"}, cores}}}});
    double least = std::numeric_limits<double>::max();
    for (int i = 0; i < times; ++i) {
        const double start = cpu_seconds();
        const auto after = test::recompile(set, machine, {{"p0", {{{"eth0"}, cores - 1}}}}, before);
        least = std::min(least, cpu_seconds() - start);
        EXPECT_EQ(after.policies[0].nics[0].lanes.size(), cores - 1);
    }
    return least;
}

TEST(LaneChoice, DoesNotGrowWithTheCubeOfTheLanes) {
    const double small = cost_of_a_death(64, 10), large = cost_of_a_death(512, 2);
    std::printf("measured: the lanes of 64 cores take %.1f ms, of 512 cores %.1f ms\n", small * 1e3,
                large * 1e3);
    EXPECT_LT(large, 150 * small) << "eight times as many: the cube is 512, the square 64";
}

} // namespace
} // namespace affinityd::planner
