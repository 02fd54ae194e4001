// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/machine_irqs.hpp"
#include "base/error.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace affinityctl {

/// Reads the machine under `root`. With an interval the table is read twice, that far apart, which only a
/// live machine allows.
[[nodiscard]] affinityd::Result<MachineIrqs>
read_machine_irqs(const std::string& root, std::optional<std::chrono::milliseconds> interval);

} // namespace affinityctl
