// SPDX-License-Identifier: Apache-2.0
#include "planner/companies.hpp"

#include "planner/company_choice.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::planner {

namespace {

constexpr std::size_t most_moved = 512; ///< members of a larger company stay where they are

/// Of all pairs of `own`, and of each of them with `others`.
template <class Way>
Closeness::Distance sum_of_ways(const std::vector<const CpuSet*>& own, const Occupied& others,
                                const Way& way) {
    Closeness::Distance sum = 0;
    for (std::size_t a = 0; a < own.size(); ++a) {
        for (std::size_t b = 0; b < a; ++b)
            sum += way(*own[a], *own[b]);
        for (const auto& place : others)
            if (place.tasks > 0) sum += place.tasks * way(*own[a], place.cpus);
    }
    return sum;
}

Closeness::Distance sum_of(const std::vector<const CpuSet*>& own, const Occupied& others,
                           const Closeness& closeness) {
    return sum_of_ways(own, others, [&](const auto& a, const auto& b) { return closeness.between(a, b); });
}

Closeness::Distance usual_sum(const std::vector<const CpuSet*>& own, const Occupied& others,
                              const Closeness& closeness) {
    return sum_of_ways(own, others, [&](const auto& a, const auto& b) { return closeness.usual(a, b); });
}

/// Who has one of the new slots already keeps it.
std::vector<std::size_t> with_few_moves(const std::vector<std::size_t>& now, std::vector<std::size_t> next) {
    std::vector<bool> stays(now.size());
    auto given = now;
    for (std::size_t i = 0; i < now.size(); ++i)
        if (const auto found = std::ranges::find(next, now[i]); found != next.end()) {
            stays[i] = true;
            next.erase(found);
        }
    for (std::size_t i = 0, taken = 0; i < now.size(); ++i)
        if (!stays[i]) given[i] = next[taken++];
    return given;
}

std::vector<const CpuSet*> cpus_of(std::span<const Slot> slots, const std::vector<std::size_t>& which) {
    std::vector<const CpuSet*> cpus;
    for (const auto slot : which)
        cpus.push_back(&slots[slot].cpus);
    return cpus;
}

} // namespace

unsigned Companies::join(const CompanyId& id, const Member& member) {
    const auto unused = std::ranges::find(companies_, nullptr, &Company::id);
    const auto [entry, is_new] = numbers_.try_emplace(id, static_cast<unsigned>(unused - companies_.begin()));
    if (is_new && unused == companies_.end()) companies_.emplace_back();
    auto& company = companies_[entry->second];
    company.id = &entry->first;
    company.members.insert(member);
    return entry->second;
}

void Companies::leave(unsigned number, const Member& member) {
    auto& company = companies_[number];
    company.members.erase(member);
    if (!company.members.empty()) return;
    const CompanyId id = *company.id;
    company = {};
    numbers_.erase(id);
}

std::optional<unsigned> Companies::find(const CompanyId& id) const {
    const auto found = numbers_.find(id);
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

unsigned Companies::enter(unsigned number, const CpuSet& cpus, Weight weight) {
    auto& places = companies_[number].places;
    const unsigned place = places.enter(cpus);
    places.weigh(place, weight);
    return place;
}

void Companies::exit(unsigned number, unsigned place, Weight weight) {
    auto& places = companies_[number].places;
    places.weigh(place, -weight);
    places.leave(place);
}

void Companies::weigh(unsigned number, unsigned place, Weight change) {
    companies_[number].places.weigh(place, change);
}

std::size_t Companies::best(unsigned number, std::span<const Slot> slots, const CpuLoad& load,
                            const Closeness& closeness, const CpuSet* present) const {
    if (slots.size() == 1) return 0;
    CpuLoad others = load;
    if (number != none)
        for (const auto& [cpus, sum, tasks] : companies_[number].places)
            others.add(cpus, -sum);
    CompanyChoice choice(slots, std::move(others), closeness);
    if (number != none)
        for (const auto& [cpus, sum, tasks] : companies_[number].places)
            if (tasks > 0) choice.add(cpus, tasks);
    return choice.next(present);
}

bool Companies::is_outdated(unsigned number, const Closeness& closeness) {
    auto& company = companies_[number];
    const bool is_new = !std::exchange(company.is_seated, true);
    if (!is_new && (closeness.matrix() == nullptr || closeness.matrix() == company.seated_by)) return false;
    company.seated_by = closeness.matrix();
    return !is_new;
}

std::vector<TaskId> Companies::members(unsigned number, unsigned table) const {
    std::vector<TaskId> tasks;
    for (const auto& member : companies_[number].members)
        if (member.table == table) tasks.push_back(member.task);
    return tasks;
}

std::vector<std::size_t> Companies::better(unsigned number, std::span<const Slot> slots,
                                           const std::vector<Sitting>& members, const CpuLoad& load,
                                           const Closeness& closeness) const {
    if (members.size() < 2 || members.size() > most_moved) return {};
    Occupied rest = companies_[number].places; // with members of other distributions, who stay
    CpuLoad others = load;
    for (const auto& [cpus, sum, tasks] : rest)
        others.add(cpus, -sum);
    std::vector<std::size_t> now;
    for (const auto& [name, place] : members) {
        const auto slot = std::ranges::find(slots, name, [](const Slot& one) { return one.cpus.first(); });
        if (slot == slots.end()) return {}; // the CPUs are others now
        now.push_back(static_cast<std::size_t>(slot - slots.begin()));
        rest.leave(place);
    }
    CompanyChoice choice(slots, std::move(others), closeness);
    for (const auto& [cpus, sum, tasks] : rest)
        if (tasks > 0) choice.add(cpus, tasks);
    std::vector<std::size_t> next;
    for (std::size_t i = 0; i < now.size(); ++i) {
        next.push_back(choice.next(nullptr));
        choice.add(slots[next.back()].cpus, 1);
    }
    const auto before = cpus_of(slots, now), after = cpus_of(slots, next);
    const bool is_closer = sum_of(after, rest, closeness) * 8 <= sum_of(before, rest, closeness) * 7 &&
                           usual_sum(after, rest, closeness) * 8 <= usual_sum(before, rest, closeness) * 7;
    return is_closer ? with_few_moves(now, std::move(next)) : std::vector<std::size_t>{};
}

Nearness Companies::nearness(const CompanyId& id, const CpuSet& cpus, const Closeness& closeness) const {
    Nearness near{.is_measured = closeness.matrix() != nullptr};
    const auto number = find(id);
    if (!number) return near;
    std::optional<Closeness::Distance> least;
    double sum = 0;
    unsigned measured = 0;
    bool is_itself = true; // of those on its own CPUs, one is itself
    for (const auto& [there, weight, tasks] : companies_[*number].places) {
        const unsigned others = tasks - (tasks > 0 && is_itself && there == cpus ? 1U : 0U);
        if (there == cpus) is_itself = false;
        if (others == 0) continue;
        near.others += others;
        const auto ns = closeness.ns(cpus.first(), there.first());
        if (ns) sum += *ns * others;
        if (ns) measured += others;
        const auto distance = closeness.between(cpus, there);
        if (least && *least <= distance) continue;
        least = distance;
        near.cpu = there.first();
        near.ns = ns;
    }
    if (measured > 0) near.mean_ns = sum / measured;
    return near;
}

} // namespace affinityd::planner
