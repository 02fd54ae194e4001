// SPDX-License-Identifier: Apache-2.0
#include "planner/companies.hpp"

#include "planner/company_choice.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace affinityd::planner {

namespace {

constexpr std::size_t most_moved = 512; ///< members of a larger company stay where they are
constexpr std::size_t few = 32; ///< members: their sums are worked out anew each time, instead of kept

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

/// Tasks without a CPU of their own: on each set of CPUs those beyond the number of these.
std::size_t crowded(const std::vector<const CpuSet*>& own, const Occupied& others) {
    std::map<CpuSet, std::size_t> tasks;
    for (const auto* cpus : own)
        ++tasks[*cpus];
    for (const auto& place : others)
        if (place.tasks > 0) tasks[place.cpus] += place.tasks;
    std::size_t crowd = 0;
    for (const auto& [cpus, count] : tasks)
        crowd += count - std::min<std::size_t>(count, cpus.count());
    return crowd;
}

std::vector<const CpuSet*> cpus_of(std::span<const Slot> slots, const std::vector<std::size_t>& which) {
    std::vector<const CpuSet*> cpus;
    for (const auto slot : which)
        cpus.push_back(&slots[slot].cpus);
    return cpus;
}

CompanySums sums_of(const Occupied& places, std::span<const Slot> slots,
                    const std::shared_ptr<const Closeness>& closeness) {
    CompanySums sums(slots, closeness);
    for (const auto& [cpus, sum, tasks] : places)
        if (tasks > 0) sums.change(cpus, 0, tasks);
    return sums;
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
    auto& company = companies_[number];
    const unsigned place = company.places.enter(cpus);
    company.places.weigh(place, weight);
    const unsigned tasks = company.places[place].tasks;
    if (company.sums) company.sums->change(cpus, tasks - 1, tasks);
    return place;
}

void Companies::exit(unsigned number, unsigned place, Weight weight) {
    auto& company = companies_[number];
    company.places.weigh(place, -weight);
    const auto& [cpus, sum, tasks] = company.places[place];
    if (company.sums) company.sums->change(cpus, tasks, tasks - 1);
    company.places.leave(place);
}

void Companies::weigh(unsigned number, unsigned place, Weight change) {
    companies_[number].places.weigh(place, change);
}

std::size_t Companies::best(unsigned number, std::span<const Slot> slots, const CpuLoad& load,
                            const std::shared_ptr<const Closeness>& closeness, const CpuSet* present) {
    if (slots.size() == 1) return 0;
    if (number == none) return CompanyChoice(slots, load, CompanySums(slots, closeness)).next(present);
    auto& company = companies_[number];
    CpuLoad others = load;
    for (const auto& [cpus, sum, tasks] : company.places)
        others.add(cpus, -sum);
    auto& sums = company.sums;
    if (!sums || &sums->closeness() != closeness.get() || !sums->are_of(slots))
        sums = sums_of(company.places, slots, closeness);
    const auto chosen = CompanyChoice(slots, others, *sums).next(present);
    if (company.members.size() <= few) sums.reset();
    return chosen;
}

bool Companies::is_outdated(unsigned number, const Closeness& closeness) {
    auto& company = companies_[number];
    if (company.sums && &company.sums->closeness() != &closeness) company.sums.reset();
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
                                           const std::shared_ptr<const Closeness>& closeness) const {
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
    auto sums = sums_of(rest, slots, closeness);
    const CompanyChoice choice(slots, others, sums);
    std::vector<std::size_t> next;
    for (std::size_t i = 0; i < now.size(); ++i) {
        next.push_back(choice.next(nullptr));
        sums.change(slots[next.back()].cpus, 0, 1);
    }
    const auto before = cpus_of(slots, now), after = cpus_of(slots, next);
    // On one CPU they are as close as can be, but only one runs: that is no gain, and its end is one.
    const auto crowd_before = crowded(before, rest), crowd_after = crowded(after, rest);
    if (crowd_after > crowd_before) return {};
    if (crowd_after < crowd_before) return with_few_moves(now, std::move(next));
    const bool is_closer = sum_of(after, rest, *closeness) * 8 <= sum_of(before, rest, *closeness) * 7 &&
                           usual_sum(after, rest, *closeness) * 8 <= usual_sum(before, rest, *closeness) * 7;
    return is_closer ? with_few_moves(now, std::move(next)) : std::vector<std::size_t>{};
}

Nearness Companies::nearness(const CompanyId& id, const CpuSet& cpus, const Closeness& closeness) const {
    Nearness near{.is_measured = closeness.matrix() != nullptr};
    const auto number = find(id);
    if (!number) return near;
    std::optional<Closeness::Distance> least;
    double sum = 0;
    bool is_itself = true; // of those on its own CPUs, one is itself
    for (const auto& [there, weight, tasks] : companies_[*number].places) {
        const unsigned others = tasks - (tasks > 0 && is_itself && there == cpus ? 1U : 0U);
        if (there == cpus) is_itself = false;
        if (others == 0) continue;
        near.others += others;
        if (there.first() == cpus.first()) near.same += others;
        const auto ns = closeness.ns(cpus.first(), there.first());
        if (ns) sum += *ns * others;
        if (ns) near.measured += others;
        const auto distance = closeness.between(cpus, there);
        if (least && *least <= distance) continue;
        least = distance;
        near.cpu = there.first();
        near.is_shared = there.first() == cpus.first();
        near.ns = ns;
        near.is_guess = closeness.is_guess(cpus.first(), near.cpu);
    }
    if (near.measured > 0) near.mean_ns = sum / near.measured;
    return near;
}

} // namespace affinityd::planner
