// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/machine_irqs.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

/// One interface as `nics --json` prints it. `live`: its threads are those of this machine.
[[nodiscard]] nlohmann::json nic_json(const affinityd::netdev::Nic& nic, const MachineIrqs& machine,
                                      bool live);

/// That document as text: what the interface is, then its vectors, or its queues where it has none.
[[nodiscard]] std::string nic_text(const nlohmann::json& nic, bool color);

/// "nginx 812, nginx 813 and 2 more"; "-" for none.
[[nodiscard]] std::string tasks_text(const nlohmann::json& tasks);

} // namespace affinityctl
