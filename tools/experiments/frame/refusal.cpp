// SPDX-License-Identifier: Apache-2.0
#include "experiments/frame/refusal.hpp"

namespace affinityd::experiments {

namespace {

std::string usable_words(const CpuSet& usable) {
    if (usable.empty()) return "no CPU";
    return (usable.count() == 1 ? "CPU " : "CPUs ") + usable.to_list();
}

} // namespace

std::string sentence_of(Refusal refusal, const CpuSet& usable) {
    const auto cpus = usable_words(usable);
    switch (refusal) {
    case Refusal::one_cpu:
        return "this needs two CPUs, and only " + cpus + " may be used here";
    case Refusal::no_smt:
        return "no core has two hardware threads among " + cpus + ", which may be used here";
    case Refusal::one_core:
        return "this needs two cores, and " + cpus + ", which may be used here, are hardware threads of one";
    case Refusal::one_llc:
        return cpus + ", which may be used here, share one last-level cache, so there is no other one to "
                      "compare with";
    case Refusal::few_cpus:
        return "this needs more CPUs than may be used here: " + cpus;
    case Refusal::no_caches:
        return "this machine does not say how large its caches are, so there is nothing to go by";
    case Refusal::no_clock:
        return "this machine's clock is too coarse for it";
    }
    return "this machine cannot do it";
}

} // namespace affinityd::experiments
