// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

namespace affinityd::host {
class Root;
}

namespace affinityd::ttcp {

/// CPU frequency in Hz: the mean of what cpufreq reports for the online CPUs, else of "cpu MHz" in
/// /proc/cpuinfo. No value where the machine gives neither (most ARM servers in virtual machines).
[[nodiscard]] std::optional<double> read_frequency(const host::Root& root);

} // namespace affinityd::ttcp
