// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/machine_irqs.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace affinityctl {

/// Adds to a line what `irqs` and `nics` both print of it: requested, effective, hint, writable, chip, count,
/// counts (since boot, by CPU, without zeroes) and rate (per second and CPU, {"0": 12.5}; null without an
/// earlier reading).
void add_line(nlohmann::json& into, const MachineIrqs& machine, const affinityd::irq::Irq& line);

/// "cpu3 1200/s, cpu0 2/s": the busiest CPUs of a line first, at most three; its rates if it has them, else
/// its counts.
[[nodiscard]] std::string busiest(const nlohmann::json& line);

} // namespace affinityctl
