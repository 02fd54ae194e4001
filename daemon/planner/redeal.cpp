// SPDX-License-Identifier: Apache-2.0
#include "planner/redeal.hpp"

#include "planner/place.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

namespace affinityd::planner {

namespace {

constexpr Weight least_gain = one_cpu / 8;
constexpr Weight free_core = one_cpu / 8; ///< a core with less counts as free
constexpr unsigned longest_chain = 4;
constexpr unsigned most_looks = 6'000;      ///< at slots, for one core: less than a millisecond
constexpr std::size_t most_detours = 8;     ///< by which a chain may begin
constexpr std::size_t most_candidates = 24; ///< of one core

/// The CPUs that a policy's interfaces are near to; null: the distribution has nothing to do with them.
const CpuSet* near_of(const Placements& placements, const DistributionId& distribution) {
    const auto* resolved = placements.find(distribution.policy);
    if (resolved == nullptr) return nullptr;
    const auto* nic = resolved->nic(distribution.among);
    return nic == nullptr ? nullptr : &nic->near;
}

} // namespace

bool Redeal::Trial::has_moved(unsigned item) const {
    return std::ranges::find(done, item, &std::pair<unsigned, unsigned>::first) != done.end();
}

Redeal::Table& Redeal::table(unsigned number) {
    if (number >= tables_.size()) tables_.resize(number + 1U);
    auto& table = tables_[number];
    if (table.is_known) return table;
    table.is_known = true;
    const auto& distribution = assignments_.distribution(number);
    if (distribution.among == "together") return table; // the slots inside count
    table.slots = slots_of(placements_, distribution);
    if (table.slots == nullptr) return table;
    table.near = near_of(placements_, distribution);
    table.items.resize(table.slots->size());
    for (unsigned i = 0; i < table.slots->size(); ++i) {
        const auto& cpus = (*table.slots)[i].cpus;
        table.cpus |= cpus;
        std::map<unsigned, Weight> cores;
        for (const unsigned cpu : cpus)
            ++cores[load_.core_of(cpu)];
        auto& parts = table.parts.emplace_back();
        for (const auto& [core, count] : cores) {
            places_[core].emplace_back(number, i);
            parts.push_back({core, count});
        }
    }
    return table;
}

void Redeal::collect(const TaskId& task, const Assignments::Seat& seat) {
    auto& table = this->table(seat.table);
    if (table.slots == nullptr || seat.is_cut) return;
    const auto slot =
        std::ranges::find(*table.slots, seat.now, [](const Slot& one) { return one.cpus.first(); });
    if (slot == table.slots->end()) return;
    const auto index = static_cast<unsigned>(slot - table.slots->begin());
    table.items[index].push_back(static_cast<unsigned>(items_.size()));
    items_.push_back({task, seat.weight, seat.table, index, index});
}

bool Redeal::step(const std::function<bool()>& out_of_time) {
    while (stage_ != Stage::done) {
        if (stage_ == Stage::measure) {
            measure();
            stage_ = Stage::improve;
        } else if (stage_ == Stage::improve) {
            improve();
        } else {
            const auto& seats = assignments_.seats();
            if (buckets_ != seats.bucket_count()) { // it has grown meanwhile
                items_.clear();
                tables_.clear();
                places_.clear();
                bucket_ = 0;
                buckets_ = seats.bucket_count();
            }
            if (bucket_ == buckets_) {
                load_ = assignments_.load();
                for (const auto& [core, places] : places_) {
                    cores_.resize(core + 1U);
                    cores_[core] = load_.on_core(core);
                }
                stage_ = Stage::measure;
            } else {
                for (auto seat = seats.begin(bucket_); seat != seats.end(bucket_); ++seat)
                    collect(seat->first, seat->second);
                if (++bucket_ % 64 != 0) continue;
            }
        }
        if (stage_ != Stage::done && out_of_time()) return false;
    }
    return true;
}

void Redeal::measure() {
    std::map<CpuSet, Confined> sets;
    CpuLoad fixed = load_;
    for (const auto& item : items_) {
        const auto& table = tables_[item.table];
        const auto& slot = (*table.slots)[item.slot];
        fixed.add(slot.cpus, -item.weight);
        auto& confined = sets[table.cpus];
        confined.cpus = table.cpus;
        confined.total += item.weight;
        confined.pieces.push_back(item.weight / static_cast<Weight>(slot.cpus.count()));
        if (table.near != nullptr && !slot.cpus.intersects(*table.near)) ++goodness_.off_node;
    }
    std::vector<Confined> work;
    for (auto& [cpus, confined] : sets)
        work.push_back(std::move(confined));
    goodness_.busiest = load_.busiest();
    goodness_.least = least_busiest(work, fixed);
    for (const auto& [core, places] : places_) {
        left_.insert(core);
        if (shares_needlessly(core)) ++goodness_.paired;
    }
}

/// True if tasks on both threads of a core could be on cores of their own.
bool Redeal::shares_needlessly(unsigned core) const {
    std::set<unsigned> busy;
    const std::vector<Slot>* slots = nullptr;
    for (const auto& [number, index] : places_.at(core)) {
        const auto& table = tables_[number];
        const auto& cpus = (*table.slots)[index].cpus;
        if (table.items[index].empty()) continue;
        for (const unsigned cpu : cpus)
            if (load_.core_of(cpu) == core && load_.on_cpu(cpu) >= free_core) busy.insert(cpu);
        const bool has_free = std::ranges::any_of(
            *table.slots, [&](const Slot& slot) { return load_.of(slot.cpus).core < free_core; });
        if (has_free && cpus.count() == 1) slots = table.slots;
    }
    return busy.size() > 1 && slots != nullptr;
}

Weight Redeal::part_of(unsigned item, unsigned slot) const {
    const auto& table = tables_[items_[item].table];
    return items_[item].weight / static_cast<Weight>((*table.slots)[slot].cpus.count());
}

/// Tasks that may leave a core: of those that are alike, one; the heaviest first.
std::vector<unsigned> Redeal::candidates(unsigned core, const Trial& trial) const {
    std::vector<unsigned> found;
    for (const auto& [number, index] : places_.at(core)) {
        const auto& table = tables_[number];
        if (table.slots->size() < 2) continue;
        std::map<Weight, unsigned> alike;
        for (const unsigned item : table.items[index]) {
            if (items_[item].weight == 0 || trial.has_moved(item)) continue;
            const auto [at, is_new] = alike.try_emplace(items_[item].weight, item);
            if (!is_new && items_[item].task < items_[at->second].task) at->second = item;
        }
        for (const auto& [weight, item] : alike)
            found.push_back(item);
    }
    std::ranges::sort(found, {},
                      [&](unsigned item) { return std::pair(-items_[item].weight, items_[item].task); });
    if (found.size() > most_candidates) found.resize(most_candidates);
    return found;
}

/// The load of the busiest core of a slot after the task has come.
Weight Redeal::busiest_with(unsigned item, unsigned slot) const {
    const Weight part = part_of(item, slot);
    Weight busiest = 0;
    for (const auto& [core, cpus] : tables_[items_[item].table].parts[slot])
        busiest = std::max(busiest, cores_[core] + part * cpus);
    return busiest;
}

void Redeal::put(unsigned number, unsigned slot) {
    auto& item = items_[number];
    auto& table = tables_[item.table];
    for (const auto& [core, cpus] : table.parts[item.slot])
        cores_[core] -= part_of(number, item.slot) * cpus;
    for (const auto& [core, cpus] : table.parts[slot])
        cores_[core] += part_of(number, slot) * cpus;
    std::erase(table.items[item.slot], number);
    table.items[slot].push_back(number);
    item.slot = slot;
}

void Redeal::undo(Trial& trial, std::size_t to) {
    while (trial.done.size() > to) {
        const auto [item, slot] = trial.done.back();
        trial.done.pop_back();
        put(item, slot);
    }
}

/// The one task whose leaving is enough, or helps most, to the slot that is best for it.
bool Redeal::move_one(unsigned core, const std::vector<unsigned>& items, Trial& trial) {
    struct Choice {
        bool is_short; ///< it is not enough
        Weight weight; ///< the lightest that is enough; else the heaviest
        Weight busiest;
        unsigned item, slot;
    };
    std::optional<Choice> best;
    const auto key = [](const Choice& choice) {
        return std::tuple(choice.is_short, choice.weight, choice.busiest);
    };
    for (const unsigned item : items) {
        const auto& table = tables_[items_[item].table];
        const bool is_short = cores_[core] - part_of(item, items_[item].slot) > trial.limit;
        for (unsigned slot = 0; slot < table.slots->size() && trial.looks > 0; ++slot) {
            if (slot == items_[item].slot) continue;
            --trial.looks;
            const Weight busiest = busiest_with(item, slot);
            if (busiest > trial.limit) continue;
            const Choice choice{is_short, is_short ? -items_[item].weight : items_[item].weight, busiest,
                                item, slot};
            if (!best || key(choice) < key(*best)) best = choice;
        }
    }
    if (!best) return false;
    trial.done.emplace_back(best->item, items_[best->item].slot);
    put(best->item, best->slot);
    return true;
}

/// A task takes a slot that is too full for it, whose tasks then have to go on: the least full slots first.
bool Redeal::move_chain(unsigned core, const std::vector<unsigned>& items, Trial& trial) {
    struct Detour {
        Weight busiest;
        unsigned item, slot, other;
    };
    std::vector<Detour> detours;
    for (const unsigned item : items) {
        const auto& table = tables_[items_[item].table];
        for (unsigned slot = 0; slot < table.parts.size() && trial.looks > 0; ++slot) {
            --trial.looks;
            const auto& parts = table.parts[slot];
            const unsigned other = parts.front().core;
            const Weight more = part_of(item, slot) * parts.front().cpus;
            if (slot == items_[item].slot || other == core || parts.size() > 1 || more > trial.limit)
                continue;
            if (cores_[other] + more - can_leave(other, trial) <= trial.limit)
                detours.push_back({cores_[other] + more, item, slot, other});
        }
    }
    std::ranges::stable_sort(detours, {}, &Detour::busiest);
    if (detours.size() > most_detours) detours.resize(most_detours);
    const auto mark = trial.done.size();
    const unsigned steps = trial.steps;
    for (const auto& [busiest, item, slot, other] : detours) {
        trial.done.emplace_back(item, items_[item].slot);
        put(item, slot);
        --trial.steps;
        if (relieve(other, trial) && relieve(core, trial)) return true;
        undo(trial, mark);
        trial.steps = steps;
    }
    return false;
}

/// How much work of tasks that have several slots is on a core.
Weight Redeal::can_leave(unsigned core, const Trial& trial) const {
    Weight sum = 0;
    for (const auto& [number, index] : places_.at(core)) {
        const auto& table = tables_[number];
        if (table.slots->size() < 2) continue;
        for (const unsigned item : table.items[index])
            if (!trial.has_moved(item)) sum += part_of(item, index);
    }
    return sum;
}

bool Redeal::relieve(unsigned core, Trial& trial) {
    while (cores_[core] > trial.limit) {
        if (trial.steps == 0 || trial.looks == 0) return false;
        const auto items = candidates(core, trial);
        if (!move_one(core, items, trial)) return trial.steps > 1 && move_chain(core, items, trial);
        --trial.steps;
    }
    return true;
}

void Redeal::improve() {
    const auto busiest = std::ranges::max_element(left_, {}, [&](unsigned core) { return cores_[core]; });
    if (busiest == left_.end()) return list_moves();
    const unsigned core = *busiest;
    const Weight load = cores_[core];
    Trial trial{load - std::max(least_gain, load / 10), longest_chain, most_looks, {}};
    if (trial.limit > 0 && relieve(core, trial)) return;
    undo(trial, 0);
    left_.erase(core);
}

void Redeal::list_moves() {
    for (const auto& item : items_) {
        const auto& slots = *tables_[item.table].slots;
        if (item.slot != item.before)
            moves_.push_back({item.task, item.table, slots[item.before].cpus.first(), slots[item.slot]});
    }
    std::ranges::sort(moves_, {}, [](const Move& move) { return std::pair(move.task, move.table); });
    stage_ = Stage::done;
}

} // namespace affinityd::planner
