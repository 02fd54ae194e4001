// SPDX-License-Identifier: Apache-2.0
#include "planner/crowding.hpp"

#include "planner/place.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace affinityd::planner {

namespace {

constexpr unsigned enough_looks = 3;
constexpr Weight least_gain = one_cpu / 8; ///< less work than that is not worth a move

/// Slots that tasks of one distribution, in one cpuset, may have.
struct Choices {
    std::vector<Slot> slots; ///< empty: they stay
    std::set<unsigned> cores;
};

struct Sitting {
    const Assignments::Seats::value_type* seat;
    const Choices* choices;
    [[nodiscard]] Weight weight() const { return seat->second.weight; }
};

using ChoicesOf = std::map<std::pair<unsigned, CpuSet>, Choices>; ///< by distribution and cpuset

Choices choices_of(const Placements& placements, const Assignments& assignments,
                   const Assignments::Seat& seat) {
    Choices choices;
    const auto* slots = slots_of(placements, assignments.distribution(seat.table));
    if (slots == nullptr || seat.numbered) return choices; // a pair stays together
    choices.slots = seat.cpuset.empty() ? *slots : cut_slots(*slots, seat.cpuset);
    for (const auto& slot : choices.slots)
        for (const unsigned cpu : slot.cpus)
            choices.cores.insert(assignments.load().core_of(cpu));
    return choices;
}

/// The tasks that are not idle, by the first core of their slots; on each the lightest first.
std::map<unsigned, std::vector<Sitting>> tasks_by_core(const Placements& placements,
                                                       const Assignments& assignments, ChoicesOf& known) {
    std::map<unsigned, std::vector<Sitting>> cores;
    for (const auto& entry : assignments.seats()) {
        const auto& seat = entry.second;
        if (seat.weight < Assignments::idle) continue;
        const auto [at, is_new] = known.try_emplace({seat.table, seat.cpuset});
        if (is_new) at->second = choices_of(placements, assignments, seat);
        cores[assignments.load().core_of(seat.now)].push_back({&entry, &at->second});
    }
    for (auto& [core, tasks] : cores)
        std::ranges::sort(tasks, {}, [](const Sitting& one) {
            return std::tuple(one.weight(), one.seat->first, one.seat->second.table);
        });
    return cores;
}

bool is_crowded(unsigned core, const std::vector<Sitting>& tasks, const CpuLoad& load) {
    std::set<unsigned> usable;
    for (const Choices* last = nullptr; const auto& one : tasks)
        if (one.choices != std::exchange(last, one.choices))
            usable.insert(one.choices->cores.begin(), one.choices->cores.end());
    Weight sum = 0;
    for (const unsigned one : usable)
        sum += load.on_core(one);
    const Weight mean = usable.empty() ? 0 : sum / static_cast<Weight>(usable.size());
    return load.on_core(core) > mean + std::max(mean / 4, least_gain);
}

/// A whole core is idle while another has more work than it can do: no nearness is worth that.
bool is_urgent(Weight load, Weight free_load) {
    return free_load < least_gain && load > one_cpu + least_gain;
}

/// False: the kernel chooses the core.
bool have_own_masks(const std::vector<Slot>& slots) {
    return std::ranges::any_of(slots, [&](const Slot& slot) { return slot.mask != slots.front().mask; });
}

/// On each of its cores, on average.
Weight load_of(const Slot& slot, const CpuLoad& load) {
    return load.of(slot.cpus).core / static_cast<Weight>(slot.cpus.count());
}

/// The weight that a task adds to each core of a slot.
Weight part_of(Weight weight, const Slot& slot, const CpuLoad& load) {
    std::set<unsigned> cores;
    for (const unsigned cpu : slot.cpus)
        cores.insert(load.core_of(cpu));
    return weight / static_cast<Weight>(cores.size());
}

} // namespace

std::string to_string(const Crowding& crowding) {
    const auto [first, last] = std::minmax(crowding.policy, crowding.mate_policy);
    const auto who = crowding.mate == TaskId{} ? fmt::format("a task of {} and interrupts", crowding.policy)
                     : first == last           ? fmt::format("two tasks of {}", first)
                                               : fmt::format("{} and {}", first, last);
    if (crowding.free_load < least_gain)
        return fmt::format("{} share the core of CPU {} while that of CPU {} is idle", who, crowding.core,
                           crowding.free);
    const auto cpus = [](Weight load) { return static_cast<double>(load) / static_cast<double>(one_cpu); };
    return fmt::format(
        "{} share the core of CPU {}, which has {:.2f} CPUs of work; that of CPU {} has {:.2f}", who,
        crowding.core, cpus(crowding.load), crowding.free, cpus(crowding.free_load));
}

std::vector<Crowding> crowdings(const Placements& placements, const Assignments& assignments,
                                const std::function<bool(const TaskId&)>& stays) {
    ChoicesOf known;
    const auto cores = tasks_by_core(placements, assignments, known);
    CpuLoad load = assignments.load();
    std::vector<unsigned> busiest;
    for (const auto& [core, tasks] : cores)
        if (is_crowded(core, tasks, load)) busiest.push_back(core);
    std::ranges::stable_sort(busiest, std::greater<>(), [&](unsigned core) { return load.on_core(core); });
    std::vector<Crowding> found;
    for (const unsigned core : busiest) {
        const auto& tasks = cores.at(core);
        for (const auto& one : tasks) {
            const auto& [task, seat] = *one.seat;
            const auto& slots = one.choices->slots;
            const auto& policy = assignments.distribution(seat.table).policy;
            if (slots.size() < 2) continue;
            const auto best =
                std::ranges::min_element(slots, {}, [&](const Slot& slot) { return load_of(slot, load); });
            const Weight there = load_of(*best, load);
            if (stays && stays(task) && !is_urgent(load.on_core(core), there)) continue;
            if (there + part_of(one.weight(), *best, load) + least_gain > load.on_core(core)) continue;
            const auto mate = std::ranges::find_if(
                tasks.rbegin(), tasks.rend(), [&](const Sitting& other) { return other.seat != one.seat; });
            auto& crowding = found.emplace_back(Crowding{.core = core,
                                                         .free = load.core_of(best->cpus.first()),
                                                         .load = load.on_core(core),
                                                         .free_load = there,
                                                         .task = task,
                                                         .policy = policy,
                                                         .mate = {},
                                                         .mate_policy = {},
                                                         .table = seat.table,
                                                         .from = seat.now,
                                                         .to = *best,
                                                         .is_by_mask = have_own_masks(slots)});
            if (mate != tasks.rend()) {
                crowding.mate = mate->seat->first;
                crowding.mate_policy = assignments.distribution(mate->seat->second.table).policy;
            }
            load.add(best->cpus, one.weight());
            load.add(seat.cpus, -one.weight());
            if (!is_crowded(core, tasks, load)) break;
        }
    }
    return found;
}

std::vector<Crowding> Relief::look(const std::vector<Crowding>& found) {
    std::map<unsigned, unsigned> looks;
    std::vector<Crowding> moves;
    std::set<unsigned> urgent;
    for (const auto& crowding : found) {
        const auto before = looks_.find(crowding.core);
        looks[crowding.core] = before == looks_.end() ? 1 : before->second + 1;
        if (is_urgent(crowding.load, crowding.free_load)) urgent.insert(crowding.core);
        if (looks[crowding.core] >= enough_looks || urgent.contains(crowding.core)) moves.push_back(crowding);
    }
    looks_ = std::move(looks);
    return moves;
}

} // namespace affinityd::planner
