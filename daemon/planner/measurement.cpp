// SPDX-License-Identifier: Apache-2.0
#include "planner/measurement.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::planner {

namespace {

constexpr Weight free_core = one_cpu / 8;  ///< a core with less counts as free
constexpr std::size_t items_at_once = 128; ///< that are counted in one go

} // namespace

void Measurement::begin(const Seating::Kind& kind) {
    auto& confined = sets_[kind.cpus];
    confined.cpus = kind.cpus;
    contents_.push_back({&confined, std::vector<Content::Sum>(kind.slots.size())});
}

void Measurement::add(const Seating::Item& item) {
    auto& content = contents_[item.kind->number];
    auto& [weight, tasks] = content.slots[item.before];
    weight += item.weight;
    ++tasks;
    content.confined->total += item.weight;
    content.confined->pieces.push_back(item.weight * item.kind->least / item.kind->of);
}

void Measurement::add(const Seating::Kind& kind, const CpuLoad& load) {
    const auto& sums = contents_[kind.number].slots;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        if (sums[i].tasks == 0) continue;
        const auto& cpus = kind.slots[i]->cpus;
        fixed_->add(cpus, -sums[i].weight);
        if (kind.near != nullptr && !cpus.intersects(*kind.near)) goodness_.off_node += sums[i].tasks;
    }
    add_paired(kind, load);
}

/// Cores with tasks on both threads that could be on cores of their own.
void Measurement::add_paired(const Seating::Kind& kind, const CpuLoad& load) {
    const auto is_free = [&](const Slot* slot) {
        Weight sum = 0;
        for (const unsigned cpu : slot->cpus)
            if ((sum += load.on_core(cpu)) >= free_core) return false;
        return true;
    };
    const auto& sums = contents_[kind.number].slots;
    if (std::ranges::all_of(sums, [](const Content::Sum& sum) { return sum.tasks == 0; })) return;
    const bool has_free = std::ranges::any_of(kind.slots, is_free);
    for (std::size_t i = 0; i < sums.size(); ++i) {
        if (sums[i].tasks == 0) continue;
        const auto& cpus = kind.slots[i]->cpus;
        for (const unsigned cpu : cpus)
            if (load.on_cpu(cpu) >= free_core) busy_[load.core_of(cpu)].insert(cpu);
        if (has_free && cpus.count() == 1) avoidable_.insert(load.core_of(cpus.first()));
    }
}

void Measurement::find_shared(const Seating& seating) {
    const auto& load = seating.load();
    std::map<unsigned, std::vector<const Seating::Item*>>
        by_core; // tasks with work that are on one core only
    for (const auto& item : seating.items()) {
        const auto& cpus = item.kind->slots[item.before]->cpus;
        const auto core = load.core_of(cpus.first());
        const auto is_there = [&](unsigned cpu) { return load.core_of(cpu) == core; };
        if (item.weight >= free_core && std::ranges::all_of(cpus, is_there)) by_core[core].push_back(&item);
    }
    for (const auto& [core, items] : by_core) {
        if (items.size() < 2 || load.on_core(core) <= one_cpu) continue;
        for (const auto* item : items)
            for (const auto* slot : item->kind->slots) {
                const auto other = slot->cpus.first();
                if (load.core_of(other) == core || load.on_core(other) >= free_core) continue;
                goodness_.shared = {.policies = {}, .core = core, .free = load.core_of(other)};
                for (const auto* each : items)
                    goodness_.shared->policies.push_back(seating.policy_of(*each));
                return;
            }
    }
}

void Measurement::count_by_sets(const Seating& seating) {
    std::vector<Confined> work;
    for (auto& [cpus, confined] : sets_)
        work.push_back(std::move(confined));
    least_.emplace(std::move(work), std::move(*fixed_));
    goodness_.busiest = seating.load().busiest();
    find_shared(seating);
    goodness_.paired = static_cast<std::size_t>(
        std::ranges::count_if(avoidable_, [&](unsigned core) { return busy_[core].size() > 1; }));
}

bool Measurement::step(const Seating& seating, const std::function<bool()>& out_of_time) {
    while (!is_done_) {
        if (!fixed_) {
            fixed_ = seating.load();
        } else if (contents_.size() < seating.kinds().size()) {
            begin(*seating.kinds()[contents_.size()]);
        } else if (items_ < seating.items().size()) {
            for (const auto end = std::min(seating.items().size(), items_ + items_at_once); items_ < end;
                 ++items_)
                add(seating.items()[items_]);
        } else if (kinds_ < seating.kinds().size()) {
            add(*seating.kinds()[kinds_++], seating.load());
        } else if (!least_) {
            count_by_sets(seating);
        } else if (least_->step(out_of_time)) {
            goodness_.least = least_->value();
            is_done_ = true;
        }
        if (out_of_time()) return is_done_;
    }
    return true;
}

} // namespace affinityd::planner
