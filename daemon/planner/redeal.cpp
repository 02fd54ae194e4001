// SPDX-License-Identifier: Apache-2.0
#include "planner/redeal.hpp"

#include "planner/place.hpp"

#include <algorithm>
#include <set>

namespace affinityd::planner {

namespace {

constexpr Weight free_core = one_cpu / 8; ///< a core with less counts as free

/// The CPUs that a policy's interfaces are near to; null: the distribution has nothing to do with them.
const CpuSet* near_of(const Placements& placements, const DistributionId& distribution) {
    const auto* resolved = placements.find(distribution.policy);
    if (resolved == nullptr) return nullptr;
    const auto* lanes = resolved->lanes(distribution.among);
    return lanes == nullptr ? nullptr : &lanes->near;
}

bool is_in_group(const DistributionId& distribution) { return distribution.among.starts_with("together:"); }

std::vector<Deal::Part> parts_of(const Slot& slot, const CpuLoad& load) {
    std::map<unsigned, Weight> cores;
    for (const unsigned cpu : slot.cpus)
        ++cores[load.core_of(cpu)];
    std::vector<Deal::Part> parts;
    for (const auto& [core, cpus] : cores)
        parts.push_back({core, cpus});
    return parts;
}

} // namespace

Redeal::Kind Redeal::make_kind(const DistributionId& distribution) {
    Kind kind;
    const auto add = [&](const std::vector<Slot>& slots, unsigned group) {
        for (const auto& slot : slots) {
            kind.slots.push_back(&slot);
            kind.groups.push_back(group);
            kind.cpus |= slot.cpus;
        }
    };
    if (distribution.among == "together") {
        const auto* resolved = placements_.find(distribution.policy);
        if (resolved != nullptr && resolved->active)
            for (unsigned i = 0; i < resolved->together.size(); ++i)
                add(resolved->together[i].slots, i);
    } else if (const auto* slots = slots_of(placements_, distribution)) {
        add(*slots, 0);
    }
    if (kind.slots.empty()) return kind;
    kind.near = near_of(placements_, distribution);
    std::vector<Deal::Place> places;
    for (std::size_t i = 0; i < kind.slots.size(); ++i) {
        const auto count = static_cast<Weight>(kind.slots[i]->cpus.count());
        places.push_back({kind.groups[i], count, parts_of(*kind.slots[i], load_)});
        const Weight most = std::ranges::max_element(places.back().parts, {}, &Deal::Part::cpus)->cpus;
        if (i > 0 && most * kind.of >= kind.least * count) continue;
        kind.least = most;
        kind.of = count;
    }
    kind.number = deal_.add_kind(std::move(places));
    return kind;
}

const Redeal::Kind& Redeal::kind_of(unsigned table) {
    const auto [at, is_new] = tables_.try_emplace(table);
    if (!is_new) return *at->second;
    auto distribution = assignments_.distribution(table);
    if (is_in_group(distribution)) distribution.among = "together";
    auto found = kinds_.find(distribution);
    if (found == kinds_.end()) found = kinds_.emplace(distribution, make_kind(distribution)).first;
    at->second = &found->second;
    return found->second;
}

void Redeal::collect(const TaskId& task, const Assignments::Seat& seat) {
    const auto& distribution = assignments_.distribution(seat.table);
    if (distribution.among == "together") {
        if (!seat.is_cut) families_[{distribution.policy, task}].seat.emplace(seat.table, seat.now);
        return;
    }
    const auto& kind = kind_of(seat.table);
    if (seat.is_cut) return;
    const auto slot =
        std::ranges::find(kind.slots, seat.now, [](const Slot* one) { return one->cpus.first(); });
    if (slot == kind.slots.end()) return;
    const auto index = static_cast<unsigned>(slot - kind.slots.begin());
    if (is_in_group(distribution))
        families_[{distribution.policy, assignments_.owner(task)}].items.push_back(
            static_cast<unsigned>(items_.size()));
    items_.push_back({{task, &kind, seat.table, index}, {task, seat.weight, kind.number, index}});
}

/// A part of the seats; at the end, all that is to be known of them.
void Redeal::collect_some() {
    constexpr std::size_t some = 64;
    const auto& seats = assignments_.seats();
    if (walk_.buckets != seats.bucket_count()) { // it has grown meanwhile
        walk_ = {0, seats.bucket_count()};
        items_.clear();
        families_.clear();
        tables_.clear();
        kinds_.clear();
        deal_ = {};
    }
    for (const auto end = std::min(walk_.buckets, walk_.bucket + some); walk_.bucket < end; ++walk_.bucket)
        for (auto seat = seats.begin(walk_.bucket); seat != seats.end(walk_.bucket); ++seat)
            collect(seat->first, seat->second);
    if (walk_.bucket < walk_.buckets) return;
    load_ = assignments_.load();
    add_families();
    for (const auto& [item, piece] : items_)
        deal_.add(piece);
    deal_.start(load_);
    stage_ = Stage::measure;
}

/// Families whose group is known, and all of which is in it, may leave it.
void Redeal::add_families() {
    for (auto& [id, family] : families_) {
        if (!family.seat || family.items.empty()) continue;
        const auto& [first, kind] =
            std::pair(items_[family.items.front()].first.before, items_[family.items.front()].first.kind);
        const auto group = kind->groups[first];
        if (!std::ranges::all_of(family.items, [&](unsigned i) {
                const auto& item = items_[i].first;
                return item.kind == kind && kind->groups[item.before] == group;
            }))
            continue;
        family.number = deal_.add_family();
        for (const unsigned i : family.items)
            items_[i].second.family = family.number;
    }
}

bool Redeal::measure(const std::function<bool()>& out_of_time) {
    while (stage_ == Stage::collect) {
        collect_some();
        if (out_of_time()) return false;
    }
    if (stage_ == Stage::measure) {
        look();
        stage_ = Stage::improve;
    }
    return true;
}

bool Redeal::step(const std::function<bool()>& out_of_time) {
    if (!measure(out_of_time)) return false;
    while (stage_ != Stage::done) {
        if (!deal_.improve()) {
            list_moves();
            stage_ = Stage::done;
        } else if (out_of_time()) {
            return false;
        }
    }
    return true;
}

void Redeal::look() {
    std::map<CpuSet, Confined> sets;
    CpuLoad fixed = load_;
    for (const auto& [item, piece] : items_) {
        const auto& slot = *item.kind->slots[item.before];
        fixed.add(slot.cpus, -piece.weight);
        auto& confined = sets[item.kind->cpus];
        confined.cpus = item.kind->cpus;
        confined.total += piece.weight;
        confined.pieces.push_back(piece.weight * item.kind->least / item.kind->of);
        if (item.kind->near != nullptr && !slot.cpus.intersects(*item.kind->near)) ++goodness_.off_node;
    }
    std::vector<Confined> work;
    for (auto& [cpus, confined] : sets)
        work.push_back(std::move(confined));
    goodness_.busiest = load_.busiest();
    goodness_.least = least_busiest(work, fixed);
    goodness_.paired = paired();
}

/// Cores with tasks on both threads that could be on cores of their own.
std::size_t Redeal::paired() const {
    std::map<unsigned, std::set<unsigned>> busy;
    std::set<unsigned> avoidable;
    for (const auto& [id, kind] : kinds_) {
        const bool has_free = std::ranges::any_of(
            kind.slots, [&](const Slot* slot) { return load_.of(slot->cpus).core < free_core; });
        for (unsigned i = 0; i < kind.slots.size(); ++i) {
            if (deal_.on(kind.number, i).empty()) continue;
            const auto& cpus = kind.slots[i]->cpus;
            for (const unsigned cpu : cpus)
                if (load_.on_cpu(cpu) >= free_core) busy[load_.core_of(cpu)].insert(cpu);
            if (has_free && cpus.count() == 1) avoidable.insert(load_.core_of(cpus.first()));
        }
    }
    return static_cast<std::size_t>(
        std::ranges::count_if(avoidable, [&](unsigned core) { return busy[core].size() > 1; }));
}

void Redeal::list_moves() {
    for (std::size_t i = 0; i < items_.size(); ++i) {
        const auto& item = items_[i].first;
        const unsigned now = deal_.pieces()[i].place;
        if (now != item.before)
            moves_.push_back(
                {item.task, item.table, item.kind->slots[item.before]->cpus.first(), *item.kind->slots[now]});
    }
    for (const auto& [id, family] : families_) {
        if (family.number == Deal::no_family) continue;
        const auto& item = items_[family.items.front()].first;
        const unsigned group = item.kind->groups[deal_.pieces()[family.items.front()].place];
        if (group == item.kind->groups[item.before]) continue;
        const auto& cpus = placements_.find(id.first)->together[group].cpus;
        moves_.push_back({id.second, family.seat->first, family.seat->second, {cpus, cpus}});
    }
    std::ranges::sort(moves_, {}, [](const Move& move) { return std::pair(move.task, move.table); });
}

} // namespace affinityd::planner
