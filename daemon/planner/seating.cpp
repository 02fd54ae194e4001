// SPDX-License-Identifier: Apache-2.0
#include "planner/seating.hpp"

#include "planner/place.hpp"

#include <algorithm>
#include <tuple>

namespace affinityd::planner {

namespace {

constexpr int tids_at_once = 64; ///< tasks that are put in order in one go

/// The CPUs that a policy's interfaces are near to; null: the distribution has nothing to do with them.
const CpuSet* near_of(const Placements& placements, const DistributionId& distribution) {
    const auto* resolved = placements.find(distribution.policy);
    if (resolved == nullptr || distribution.kind != DistributionId::Kind::lanes) return nullptr;
    const auto* lanes = resolved->lanes(distribution.among);
    return lanes == nullptr ? nullptr : &lanes->near;
}

bool is_in_group(const DistributionId& distribution) {
    return distribution.kind == DistributionId::Kind::in_group;
}

std::vector<Deal::Part> parts_of(const Slot& slot, const CpuLoad& load) {
    std::vector<unsigned> cores;
    for (const unsigned cpu : slot.cpus)
        cores.push_back(load.core_of(cpu));
    std::ranges::sort(cores);
    std::vector<Deal::Part> parts;
    for (const unsigned core : cores) {
        if (parts.empty() || parts.back().core != core) parts.push_back({core, 0});
        ++parts.back().cpus;
    }
    return parts;
}

} // namespace

/// The slots of a group; `group`: its index among the policy's.
void Seating::add_slots(Kind& kind, const std::vector<Slot>& slots, const CpuSet& cpuset,
                        unsigned group) const {
    const auto* all = &slots;
    if (!cpuset.empty()) all = &kind.cut.emplace_back(cut_slots(slots, cpuset));
    // The deal counts those groups only that have slots.
    const unsigned number = kind.places.empty() ? 0 : kind.places.back().group + 1;
    for (const auto& slot : *all) {
        kind.slots.push_back(&slot);
        kind.groups.push_back(group);
        kind.places.push_back({number, static_cast<Weight>(slot.cpus.count()), parts_of(slot, load_)});
        kind.cpus |= slot.cpus;
    }
}

Seating::Kind Seating::make_kind(const KindId& id) const {
    const auto& [distribution, cpuset] = id;
    Kind kind;
    if (distribution.kind == DistributionId::Kind::groups) {
        const auto* resolved = placements_.find(distribution.policy);
        if (resolved != nullptr && resolved->active)
            for (unsigned i = 0; i < resolved->together.size(); ++i)
                add_slots(kind, resolved->together[i].slots, cpuset, i);
    } else if (const auto* slots = slots_of(placements_, distribution)) {
        add_slots(kind, *slots, cpuset, 0);
    }
    kind.near = near_of(placements_, distribution);
    for (const auto& place : kind.places) {
        const Weight most = std::ranges::max_element(place.parts, {}, &Deal::Part::cpus)->cpus;
        if (kind.least > 0 && most * kind.of >= kind.least * place.cpus) continue;
        kind.least = most;
        kind.of = place.cpus;
    }
    return kind;
}

const Seating::Kind& Seating::kind_of(const Assignments::Seat& seat) {
    if (seat.company != Companies::none) {
        // It stays close to others, on its slot: there is nothing else that it might have.
        const KindId here{assignments_.distribution(seat.table),
                          assignments_.companies().cpus(seat.company, seat.company_place)};
        const auto found = kinds_.find(here);
        return found == kinds_.end() ? kinds_.emplace(here, make_kind(here)).first->second : found->second;
    }
    const auto& cpuset = assignments_.cpuset_of(seat);
    auto& known = tables_[{seat.table, seat.cpuset}];
    if (known != nullptr && known->first.second == cpuset)
        return known->second; // else a new one has its number
    KindId id{assignments_.distribution(seat.table), cpuset};
    auto& distribution = id.first;
    if (is_in_group(distribution)) distribution = {distribution.policy, 0, "", DistributionId::Kind::groups};
    auto found = kinds_.find(id);
    if (found == kinds_.end()) found = kinds_.emplace(id, make_kind(id)).first;
    known = &*found;
    return found->second;
}

void Seating::collect(const TaskId& task, const Assignments::Seat& seat) {
    const auto& distribution = assignments_.distribution(seat.table);
    if (distribution.kind == DistributionId::Kind::groups) {
        families_[{distribution.policy, task}].seat.emplace(seat.table, seat.now);
        return;
    }
    const auto& kind = kind_of(seat);
    const auto slot =
        std::ranges::find(kind.slots, seat.now, [](const Slot* one) { return one->cpus.first(); });
    if (slot == kind.slots.end()) return;
    auto* family =
        is_in_group(distribution) ? &families_[{distribution.policy, assignments_.owner(task)}] : nullptr;
    const auto index = static_cast<unsigned>(slot - kind.slots.begin());
    found_[task.tid / tids_at_once].push_back(
        {task, seat.weight.weight(), seat.weight.error(), &kind, family, seat.table, index});
    ++walk_.items;
}

/// A part of the seats; to make a kind takes as long as many of these.
void Seating::collect_some() {
    constexpr std::size_t some = 16;
    const auto& seats = assignments_.seats();
    if (walk_.buckets != seats.bucket_count()) { // it has grown meanwhile
        walk_ = {.buckets = seats.bucket_count()};
        found_.clear();
        families_.clear();
        tables_.clear();
        kinds_.clear();
    }
    const auto end = std::min(walk_.buckets, walk_.bucket + some);
    for (const auto kinds = kinds_.size(); walk_.bucket < end && kinds_.size() == kinds; ++walk_.bucket)
        for (auto seat = seats.begin(walk_.bucket); seat != seats.end(walk_.bucket); ++seat)
            collect(seat->first, seat->second);
    if (walk_.bucket < walk_.buckets) return;
    load_ = assignments_.load();
    items_.reserve(walk_.items);
    number_kinds();
    stage_ = Stage::order;
}

void Seating::number_kinds() {
    for (auto& [id, kind] : kinds_) {
        if (kind.slots.empty()) continue;
        kind.number = static_cast<unsigned>(numbered_.size());
        numbered_.push_back(&kind);
    }
}

/// The next few tasks. The order in which they were found depends on what came and went before them.
void Seating::order_some() {
    if (found_.empty()) {
        stage_ = Stage::done;
        return;
    }
    auto& some = found_.begin()->second;
    std::ranges::sort(some, {}, [](const Item& item) { return std::tuple(item.task, item.kind->number); });
    for (const auto& item : some) {
        if (item.family != nullptr) item.family->items.push_back(static_cast<unsigned>(items_.size()));
        items_.push_back(item);
    }
    found_.erase(found_.begin());
}

bool Seating::step(const std::function<bool()>& out_of_time) {
    while (stage_ != Stage::done) {
        if (stage_ == Stage::collect)
            collect_some();
        else
            order_some();
        if (out_of_time()) return false;
    }
    return true;
}

} // namespace affinityd::planner
