// SPDX-License-Identifier: Apache-2.0
#include "experiments/nearness.hpp"

namespace affinityd::experiments {

namespace {

unsigned first_of(const CpuSet& group, unsigned cpu) { return group.empty() ? cpu : group.first(); }

} // namespace

std::string_view name_of(Near near) {
    constexpr std::array names{"same core", "same LLC", "same node", "same socket", "across sockets"};
    return names[static_cast<std::size_t>(near)];
}

Nearness::Nearness(const topology::Topology& topology) {
    const unsigned count = topology.online.empty() ? 0 : topology.online.last() + 1;
    for (unsigned cpu = 0; cpu < count; ++cpu)
        groups_.push_back({cpu, cpu, cpu, cpu}); // one that is offline is near to none
    for (const auto& llc : topology.llc_groups())
        for (const unsigned cpu : llc)
            groups_[cpu].llc = llc.first();
    for (const unsigned cpu : topology.online) {
        groups_[cpu].core = first_of(topology.core_of(cpu), cpu);
        groups_[cpu].node = first_of(topology.node_cpus_of(cpu), cpu);
        // A machine that names no packages is one.
        const auto package = topology.package_of(cpu);
        groups_[cpu].package = package.empty() ? topology.online.first() : package.first();
    }
}

Nearness::Groups Nearness::of(unsigned cpu) const {
    return cpu < groups_.size() ? groups_[cpu] : Groups{cpu, cpu, cpu, cpu};
}

Near Nearness::between(unsigned a, unsigned b) const {
    const auto one = of(a), other = of(b);
    if (one.core == other.core) return Near::core;
    if (one.llc == other.llc) return Near::llc;
    if (one.package != other.package) return Near::across;
    return one.node == other.node ? Near::node : Near::package;
}

std::vector<CpuPair> Nearness::pairs(const CpuSet& cpus, Near near) const {
    std::vector<CpuPair> found;
    for (const unsigned b : cpus)
        for (const unsigned a : cpus) {
            if (a >= b) break;
            if (between(a, b) == near) found.push_back({a, b});
        }
    return found;
}

std::optional<CpuPair> Nearness::first_pair(const CpuSet& cpus, Near near) const {
    for (const unsigned a : cpus)
        for (const unsigned b : cpus)
            if (a < b && between(a, b) == near) return CpuPair{a, b};
    return std::nullopt;
}

CpuSet one_per_core(const topology::Topology& topology, const CpuSet& cpus) {
    CpuSet chosen;
    for (const unsigned cpu : cpus)
        if (!chosen.intersects(topology.core_of(cpu))) chosen.insert(cpu);
    return chosen;
}

namespace {

/// "; grep ... lists those ...": not all that is online may be used by each program.
constexpr const char* which_may = "; grep Cpus_allowed_list /proc/self/status lists those that may be used";

std::string way_out(Refusal refusal, const CpuSet& usable) {
    switch (refusal) {
    case Refusal::one_cpu:
        return (usable.empty() ? "name others with --cpus, or leave that out" : "name more with --cpus") +
               std::string(which_may);
    case Refusal::no_smt:
    case Refusal::one_core:
        return "name CPUs of several cores with --cpus, or choose --pairs all for hardware threads";
    case Refusal::one_llc:
        return "name CPUs of several with --cpus, or choose --pairs core; affinityctl topology shows them";
    case Refusal::no_caches:
        break;
    }
    return "name the sizes with --caches; ls /sys/devices/system/cpu/cpu0/cache shows what the kernel knows, "
           "which is nothing on some virtual machines";
}

} // namespace

std::string words_of(const CpuSet& cpus) { return (cpus.count() == 1 ? "CPU " : "CPUs ") + cpus.to_list(); }

std::string sentence_of(Refusal refusal, const CpuSet& usable) {
    if (usable.empty()) return "none of these CPUs may be used here";
    const auto cpus = words_of(usable);
    switch (refusal) {
    case Refusal::one_cpu:
        return "this needs two CPUs, and only " + cpus + " may be used here";
    case Refusal::no_smt:
        return "no core has two hardware threads among " + cpus + ", which may be used here";
    case Refusal::one_core:
        return "this needs two cores, and " + cpus + ", which may be used here, " +
               (usable.count() == 1 ? "is a hardware thread of one" : "are hardware threads of one");
    case Refusal::one_llc:
        return cpus + ", which may be used here, " + (usable.count() == 1 ? "has" : "share") +
               " one last-level cache, so there is no other one to compare with";
    case Refusal::no_caches:
        break;
    }
    return "this machine does not say how large its caches are, so there is nothing to go by";
}

std::string refusal_of(Refusal refusal, const CpuSet& usable) {
    return sentence_of(refusal, usable) + ": " + way_out(refusal, usable);
}

} // namespace affinityd::experiments
