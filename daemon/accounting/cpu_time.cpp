// SPDX-License-Identifier: Apache-2.0
#include "accounting/cpu_time.hpp"

#include "host/boot_clock.hpp"
#include "host/root.hpp"
#include "inventory/stat.hpp"

#include <fmt/format.h>

namespace affinityd::accounting {

std::optional<CpuLedger::Entry> read_cpu_time(const host::Root& root, const TaskId& id) {
    const auto text = root.proc().text(fmt::format("{}/stat", id.tid));
    if (!text) return std::nullopt;
    const auto times = inventory::parse_stat_times(*text);
    if (!times || times->start_time != id.start_time) return std::nullopt;
    const auto ticks = times->user + times->system + times->children_user + times->children_system;
    return CpuLedger::Entry{id, times->parent,
                            static_cast<double>(ticks) / static_cast<double>(host::ticks_a_second())};
}

} // namespace affinityd::accounting
