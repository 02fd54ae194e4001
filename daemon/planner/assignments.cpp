// SPDX-License-Identifier: Apache-2.0
#include "planner/assignments.hpp"

#include <cassert>
#include <optional>

namespace affinityd::planner {

namespace {

/// Index of the slot of this name; nothing if it has gone: its CPU is offline or the policy says otherwise.
std::optional<std::size_t> slot_of(std::span<const Slot> slots, unsigned name) {
    for (std::size_t i = 0; i < slots.size(); ++i)
        if (slots[i].home.first() == name) return i;
    return std::nullopt;
}

} // namespace

void Assignments::Table::unload(unsigned seat) {
    if (const auto counted = load.find(seat); counted != load.end() && --counted->second == 0)
        load.erase(counted);
}

void Assignments::Table::move(Seat& seat, unsigned to) {
    unload(seat.now);
    seat.now = to;
    ++load[to];
}

void Assignments::Table::remove(std::unordered_map<TaskId, Seat>::iterator at) {
    unload(at->second.now);
    seats.erase(at);
}

std::size_t Assignments::seat(const DealId& deal, std::span<const Slot> slots, const TaskId& unit,
                              const CpuSet& present) {
    assert(!slots.empty());
    if (slots.size() == 1) return 0; // nothing is chosen, so nothing need be remembered
    Table& table = tables_[deal];
    const auto known = table.seats.find(unit);
    if (known != table.seats.end()) {
        auto& seat = known->second;
        if (const auto first = slot_of(slots, seat.given)) {
            if (seat.now != seat.given) table.move(seat, seat.given);
            return *first;
        }
        if (const auto same = slot_of(slots, seat.now)) return *same;
    }
    const auto load_of = [&](const Slot& slot) {
        const auto counted = table.load.find(slot.home.first());
        return counted == table.load.end() ? 0U : counted->second;
    };
    std::size_t best = 0;
    unsigned least = load_of(slots[0]);
    for (std::size_t i = 1; i < slots.size(); ++i) {
        const unsigned load = load_of(slots[i]);
        if (load > least || (load == least && (slots[i].mask != present || slots[best].mask == present)))
            continue;
        best = i;
        least = load;
    }
    const unsigned name = slots[best].home.first();
    if (known != table.seats.end()) {
        table.move(known->second, name);
    } else {
        table.seats.emplace(unit, Table::Seat{name, name});
        ++table.load[name];
    }
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
