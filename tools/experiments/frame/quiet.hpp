// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace affinityd::host {
class Root;
}

namespace affinityd::experiments {

/// How busy CPUs are before an experiment adds to it. Parts of their time, 0 to 1.
struct Quiet {
    double busy = 0;    ///< of all of them: others' programs, interrupts, and what a hypervisor took
    double stolen = 0;  ///< what a hypervisor took
    double busiest = 0; ///< of the one that is busiest
    unsigned busiest_cpu = 0;
    /// As busy as this, an experiment's figures are still what they would be on an idle machine.
    [[nodiscard]] bool is_enough() const { return busy <= 0.05 && busiest <= 0.25 && stolen <= 0.02; }
};

/// Watches `cpus` for so long; nothing of this program should run meanwhile. No value: the machine does not
/// say. Source: proc_stat(5).
[[nodiscard]] std::optional<Quiet>
look_for_quiet(const host::Root& root, const CpuSet& cpus,
               std::chrono::milliseconds time = std::chrono::milliseconds(500));

/// The same from two readings of /proc/stat.
[[nodiscard]] std::optional<Quiet> quiet_between(std::string_view first, std::string_view last,
                                                 const CpuSet& cpus);

/// "other programs keep these CPUs busy for 34 % of the time (CPU 3: 90 %): figures may be too high"; "" if
/// it is quiet enough.
[[nodiscard]] std::string remark_of(const Quiet& quiet);

} // namespace affinityd::experiments
