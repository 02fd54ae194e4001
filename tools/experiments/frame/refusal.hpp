// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"

#include <optional>
#include <string>

namespace affinityd::experiments {

/// Why a machine cannot do an experiment. That is no fault: some machines are so.
enum class Refusal {
    one_cpu,   ///< fewer than two CPUs may be used
    no_smt,    ///< no core has two hardware threads that may be used
    one_core,  ///< all CPUs that may be used are of one core
    one_llc,   ///< all CPUs that may be used share one last-level cache
    few_cpus,  ///< fewer CPUs may be used than the experiment has threads
    no_caches, ///< the sizes of its caches are not recorded
    no_clock,  ///< time cannot be taken as exactly as it would have to be
};

/// One sentence: "only CPU 0 may be used here, and it takes two to ...". `usable`: which may be used.
[[nodiscard]] std::string sentence_of(Refusal refusal, const CpuSet& usable);

} // namespace affinityd::experiments
