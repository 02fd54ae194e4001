// SPDX-License-Identifier: Apache-2.0
#include "accounting/cpu_time.hpp"

#include "host/root.hpp"
#include "inventory/stat.hpp"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::accounting {

double ticks_per_second() { return static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK))); }

std::uint64_t ticks_since_boot() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    const double seconds = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
    return static_cast<std::uint64_t>(seconds * ticks_per_second());
}

std::optional<CpuLedger::Entry> read_cpu_time(const host::Root& root, const TaskId& id) {
    const auto text = root.proc().text(fmt::format("{}/stat", id.tid));
    if (!text) return std::nullopt;
    const auto times = inventory::parse_stat_times(*text);
    if (!times || times->start_time != id.start_time) return std::nullopt;
    const auto ticks = times->user + times->system + times->children_user + times->children_system;
    return CpuLedger::Entry{id, times->parent, static_cast<double>(ticks) / ticks_per_second()};
}

} // namespace affinityd::accounting
