// SPDX-License-Identifier: Apache-2.0
#include "planner/assignments.hpp"

#include <cassert>
#include <optional>

namespace affinityd::planner {

namespace {

/// Index of the slot of this name; no value if it has gone: its CPU is offline, or the policy says otherwise
/// now.
std::optional<std::size_t> slot_named(std::span<const Slot> slots, unsigned name) {
    for (std::size_t i = 0; i < slots.size(); ++i)
        if (slots[i].cpus.first() == name) return i;
    return std::nullopt;
}

} // namespace

void Assignments::Table::unload(unsigned slot) {
    if (const auto counted = load.find(slot); counted != load.end() && --counted->second == 0)
        load.erase(counted);
}

void Assignments::Table::move(Place& place, unsigned to) {
    unload(place.now);
    place.now = to;
    ++load[to];
}

std::size_t Assignments::Table::least_loaded(std::span<const Slot> slots, const CpuSet& present) const {
    const auto load_of = [&](const Slot& slot) {
        const auto counted = load.find(slot.cpus.first());
        return counted == load.end() ? 0U : counted->second;
    };
    std::size_t best = 0;
    unsigned least = load_of(slots[0]);
    for (std::size_t i = 1; i < slots.size(); ++i) {
        const unsigned here = load_of(slots[i]);
        const bool is_better_match = slots[i].mask == present && slots[best].mask != present;
        if (here > least || (here == least && !is_better_match)) continue;
        best = i;
        least = here;
    }
    return best;
}

std::size_t Assignments::assign(const DistributionId& distribution, std::span<const Slot> slots,
                                const TaskId& task, const CpuSet& present) {
    assert(!slots.empty());
    if (slots.size() == 1) return 0; // there is no choice, so none need be remembered
    Table& table = tables_[distribution];
    const auto known = table.places.find(task);
    if (known != table.places.end()) {
        auto& place = known->second;
        if (const auto first = slot_named(slots, place.given)) {
            if (place.now != place.given) table.move(place, place.given);
            return *first;
        }
        if (const auto same = slot_named(slots, place.now)) return *same;
    }
    const auto best = table.least_loaded(slots, present);
    const unsigned name = slots[best].cpus.first();
    if (known != table.places.end()) {
        table.move(known->second, name);
    } else {
        table.places.emplace(task, Table::Place{name, name});
        ++table.load[name];
    }
    return best;
}

void Assignments::leave(const TaskId& task) {
    for (auto& [distribution, table] : tables_)
        if (const auto at = table.places.find(task); at != table.places.end()) {
            table.unload(at->second.now);
            table.places.erase(at);
        }
}

void Assignments::forget_policy(std::string_view policy) {
    std::erase_if(tables_, [&](const auto& entry) { return entry.first.policy == policy; });
}

} // namespace affinityd::planner
