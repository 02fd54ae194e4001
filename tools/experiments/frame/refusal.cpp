// SPDX-License-Identifier: Apache-2.0
#include "experiments/frame/refusal.hpp"

namespace affinityd::experiments {

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
