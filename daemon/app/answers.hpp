// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/load.hpp"
#include "app/task_table.hpp"
#include "inventory/command_lines.hpp"

#include <string>

namespace affinityd::app {

/// Why it is not known which interfaces serve a process, though its policy goes by them; "": they are known,
/// or do not matter.
[[nodiscard]] std::string nic_note(const World& world, const KnownProcess& process);

/// Logs once each process whose arguments cannot be read. `lines` may be null.
void log_silent(inventory::CommandLines* lines, Log& log);

} // namespace affinityd::app
