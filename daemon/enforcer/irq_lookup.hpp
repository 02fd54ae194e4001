// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/action.hpp"

#include <optional>
#include <string>

namespace affinityd::host {
class Root;
}

namespace affinityd::enforcer {

/// The interrupt's number now. Numbers are reused after a driver reload, so the one that was read is believed
/// only while its handler still has the name (and, where the device is known, its vector list still has the
/// number).
[[nodiscard]] std::optional<unsigned> find_irq(const host::Root& root, const planner::IrqMask& subject);

/// Path of the steering file below /sys (not of the machine's flow count, which has none there); interfaces
/// are found again by device, should they have been renamed.
[[nodiscard]] std::string steering_path(const host::Root& root, const planner::SteeringMask& subject);

} // namespace affinityd::enforcer
