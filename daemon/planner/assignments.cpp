// SPDX-License-Identifier: Apache-2.0
#include "planner/assignments.hpp"

#include <cassert>

namespace affinityd::planner {

void Assignments::Table::remove(std::unordered_map<TaskId, unsigned>::iterator at) {
    if (const auto counted = load.find(at->second); counted != load.end() && --counted->second == 0) load.erase(counted);
    seats.erase(at);
}

std::size_t Assignments::seat(const DealId& deal, std::span<const Slot> slots, const TaskId& unit, const CpuSet& present) {
    assert(!slots.empty());
    Table& table = tables_[deal];
    const auto known = table.seats.find(unit);
    if (known != table.seats.end()) {
        for (std::size_t i = 0; i < slots.size(); ++i)
            if (slots[i].home.first() == known->second) return i;
        table.remove(known); // the seat has gone: its CPU is offline or the policy says otherwise
    }
    const auto load_of = [&](const Slot& slot) {
        const auto counted = table.load.find(slot.home.first());
        return counted == table.load.end() ? 0U : counted->second;
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i < slots.size(); ++i) {
        const unsigned load = load_of(slots[i]);
        const unsigned least = load_of(slots[best]);
        if (load < least || (load == least && slots[i].mask == present && slots[best].mask != present)) best = i;
    }
    const unsigned name = slots[best].home.first();
    table.seats.emplace(unit, name);
    ++table.load[name];
    return best;
}

void Assignments::leave(const TaskId& unit) {
    for (auto& [deal, table] : tables_)
        if (const auto at = table.seats.find(unit); at != table.seats.end()) table.remove(at);
}

void Assignments::retain(const std::function<bool(const TaskId&)>& keep) {
    for (auto& [deal, table] : tables_)
        for (auto at = table.seats.begin(); at != table.seats.end();) {
            const auto here = at++;
            if (!keep(here->first)) table.remove(here);
        }
}

void Assignments::forget_policy(std::string_view policy) {
    std::erase_if(tables_, [&](const auto& entry) { return entry.first.policy == policy; });
}

std::size_t Assignments::units() const {
    std::size_t sum = 0;
    for (const auto& [deal, table] : tables_)
        sum += table.seats.size();
    return sum;
}

} // namespace affinityd::planner
