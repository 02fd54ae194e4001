// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/intruders/watch.hpp"
#include "affinityctl/present/document.hpp"
#include "base/cpu_set.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace affinityctl {

/// An interrupt line of a device.
struct HeldLine {
    std::string label;
    std::string policy;      ///< that holds its mask; "": none
    bool is_managed = false; ///< the kernel lets nobody move it
};

/// The facts by which an intruder is told from the program, and its mend found.
struct IntruderFacts {
    std::string subject; ///< "policy web", "CPUs 2-3"
    affinityd::CpuSet cpus;
    std::set<int> own; ///< processes that are at home there
    affinityd::CpuSet
        guessed; ///< where the user thread that ran longest is taken for the program, if no own one ran
    std::map<unsigned, HeldLine> lines; ///< by interrupt number
    affinityd::CpuSet nohz_full;
    std::map<unsigned, affinityd::CpuSet> siblings; ///< by CPU: others of its core
};

/// A line for each CPU and each source, longest total first. `over`: the limit that no interruption may be
/// above; the exit code tells. Pure.
[[nodiscard]] Document intruders_document(const Intrusions& seen, const IntruderFacts& facts,
                                          std::optional<std::chrono::nanoseconds> over);
extern const Fields intruders_answer;

} // namespace affinityctl
