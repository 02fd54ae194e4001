// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/machine_irqs.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace affinityctl {

/// The document of `irqs --json`: one entry for each line and handler, a NIC's or (unless `nics_only`) any.
[[nodiscard]] nlohmann::json irqs_json(const MachineIrqs& machine, bool nics_only);

/// The same document as a table.
[[nodiscard]] std::string irq_table(const nlohmann::json& lines, bool color);

/// Adds to a line what `irqs` and `nics` both print of it: requested, effective, hint, writable, chip, count,
/// counts (since boot, by CPU, without zeroes) and rate (per second and CPU, {"0": 12.5}; null without an
/// earlier reading).
void add_line(nlohmann::json& into, const MachineIrqs& machine, const affinityd::irq::Irq& line);

/// "cpu3 1200/s, cpu0 2/s": the busiest CPUs of a line first, at most three; its rates if it has them, else
/// its counts.
[[nodiscard]] std::string busiest(const nlohmann::json& line);

} // namespace affinityctl
