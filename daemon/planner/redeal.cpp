// SPDX-License-Identifier: Apache-2.0
#include "planner/redeal.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::planner {

bool Redeal::measure(const std::function<bool()>& out_of_time) {
    return seating_.step(out_of_time) && measurement_.step(seating_, out_of_time);
}

bool Redeal::step(const std::function<bool()>& out_of_time) {
    if (!measure(out_of_time)) return false;
    while (stage_ != Stage::done) {
        work_some();
        if (out_of_time()) break;
    }
    return stage_ == Stage::done;
}

void Redeal::work_some() {
    auto& families = seating_.families();
    if (stage_ == Stage::kinds) {
        if (next_ < seating_.kinds().size()) return add_kind();
        next_ = 0;
        stage_ = Stage::families;
    } else if (stage_ == Stage::families) {
        const auto next = last_family_ ? families.upper_bound(*last_family_) : families.begin();
        if (next == families.end()) {
            stage_ = Stage::pieces;
            return;
        }
        add_family(next->second);
        last_family_ = next->first;
    } else if (stage_ == Stage::pieces) {
        if (next_ < seating_.items().size()) return add_pieces();
        deal_.start(seating_.load(), seating_.placements().load_errors);
        stage_ = Stage::improve;
    } else if (stage_ == Stage::improve) {
        if (deal_.improve()) return;
        next_ = 0;
        last_family_.reset();
        stage_ = Stage::moves;
    } else if (!list_moves()) {
        stage_ = Stage::done;
    }
}

void Redeal::add_kind() { deal_.add_kind(std::move(seating_.kinds()[next_++]->places)); }

/// A family whose group is known, and all of which is in it, may leave it. A crowd is no family: it stays.
void Redeal::add_family(Seating::Family& family) {
    if (!family.seat || family.items.empty() || family.items.size() > Deal::largest_family) return;
    const auto& items = seating_.items();
    const auto& first = items[family.items.front()];
    const auto group_of = [](const Seating::Item& item) { return item.kind->groups[item.before]; };
    const bool are_together = std::ranges::all_of(family.items, [&](unsigned i) {
        return items[i].kind == first.kind && group_of(items[i]) == group_of(first);
    });
    if (!are_together) return;
    auto pieces = family.items; // these are the pieces' numbers, too
    std::ranges::sort(pieces, {}, [&](unsigned i) { return std::pair(-items[i].weight, items[i].task); });
    family.number = deal_.add_family(std::move(pieces));
}

void Redeal::add_pieces() {
    constexpr std::size_t some = 128;
    const auto& items = seating_.items();
    for (const auto end = std::min(items.size(), next_ + some); next_ < end; ++next_) {
        const auto& item = items[next_];
        const auto family = item.family == nullptr ? Deal::no_family : item.family->number;
        deal_.add({item.task, item.weight, item.error, item.kind->number, item.before, family});
    }
}

/// A few more: of tasks, then of families. False: that was all.
bool Redeal::list_moves() {
    constexpr std::size_t some = 128;
    const auto& items = seating_.items();
    for (const auto end = std::min(items.size(), next_ + some); next_ < end; ++next_) {
        const auto& item = items[next_];
        const unsigned now = deal_.pieces()[next_].place;
        if (now != item.before)
            moves_.push_back(
                {item.task, item.table, item.kind->slots[item.before]->cpus.first(), *item.kind->slots[now]});
    }
    if (next_ < items.size()) return true;
    auto& families = seating_.families();
    const auto next = last_family_ ? families.upper_bound(*last_family_) : families.begin();
    if (next == families.end()) return false;
    const auto& [id, family] = *next;
    last_family_ = id;
    if (family.number == Deal::no_family) return true;
    const auto& item = items[family.items.front()];
    const unsigned group = item.kind->groups[deal_.pieces()[family.items.front()].place];
    if (group == item.kind->groups[item.before]) return true;
    const auto& cpus = seating_.placements().find(id.first)->together[group].cpus;
    moves_.push_back({id.second, family.seat->first, family.seat->second, {cpus, cpus}});
    return true;
}

} // namespace affinityd::planner
