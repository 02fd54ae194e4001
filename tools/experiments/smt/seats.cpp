// SPDX-License-Identifier: Apache-2.0
#include "experiments/smt/seats.hpp"

#include <algorithm>

namespace affinityd::experiments {

namespace {

CpuPair low_first(unsigned a, unsigned b) { return {std::min(a, b), std::max(a, b)}; }

/// The nearest CPU of another core; the lowest of equally near ones.
std::optional<unsigned> second_core(const Nearness& nearness, const CpuSet& cpus, unsigned first) {
    std::optional<unsigned> best;
    for (const unsigned cpu : cpus) {
        if (cpu == first || nearness.between(cpu, first) == Near::core) continue;
        if (!best || nearness.between(cpu, first) < nearness.between(*best, first)) best = cpu;
    }
    return best;
}

} // namespace

std::string_view name_of(Company company) {
    constexpr std::array names{"alone", "two cores", "one core"};
    return names[static_cast<std::size_t>(company)];
}

std::string_view key_of(Company company) {
    constexpr std::array keys{"alone", "cores", "siblings"};
    return keys[static_cast<std::size_t>(company)];
}

std::optional<CpuPair> SmtSeats::of(Company company) const {
    if (company == Company::alone) return CpuPair{alone, alone};
    return company == Company::cores ? cores : siblings;
}

std::expected<SmtSeats, Refusal> smt_seats(const topology::Topology& topology, const CpuSet& cpus) {
    if (cpus.count() < 2) return std::unexpected(Refusal::one_cpu);
    const Nearness nearness(topology);
    SmtSeats seats;
    seats.siblings = nearness.first_pair(cpus, Near::core);
    seats.alone = seats.siblings ? seats.siblings->a : cpus.first();
    if (!seats.siblings) seats.no_siblings = sentence_of(Refusal::no_smt, cpus);
    if (const auto other = second_core(nearness, cpus, seats.alone))
        seats.cores = low_first(seats.alone, *other);
    else
        seats.no_cores = sentence_of(Refusal::one_core, cpus);
    return seats;
}

} // namespace affinityd::experiments
