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
    no_caches, ///< the sizes of its caches are not known
};

/// "CPU 3", "CPUs 0-3"; not of none.
[[nodiscard]] std::string words_of(const CpuSet& cpus);

/// A sentence that says what is missing: "this needs two CPUs, and only CPU 0 may be used here". `usable`:
/// which may be used.
[[nodiscard]] std::string sentence_of(Refusal refusal, const CpuSet& usable);

/// The same for who asked for it, with what to type instead.
[[nodiscard]] std::string refusal_of(Refusal refusal, const CpuSet& usable);

} // namespace affinityd::experiments
