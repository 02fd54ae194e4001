// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/cpu_ledger.hpp"

#include <cstdint>
#include <optional>

namespace affinityd::host {
class Root;
}

namespace affinityd::accounting {

/// A process's CPU time by its stat file, proc_pid_stat(5). No value: this very process is gone.
[[nodiscard]] std::optional<CpuLedger::Entry> read_cpu_time(const host::Root& root, const TaskId& id);

} // namespace affinityd::accounting
