// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/machine_irqs.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

/// The document of `irqs --json`: one entry for each line and handler, a NIC's or (unless `nics_only`) any.
[[nodiscard]] nlohmann::json irqs_json(const MachineIrqs& machine, bool nics_only);

/// That document as a table.
[[nodiscard]] std::string irq_table(const nlohmann::json& lines, bool color);

} // namespace affinityctl
