// SPDX-License-Identifier: Apache-2.0
#include "accounting/cpu_time.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

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
    const auto name_end = text->rfind(')');
    if (name_end == std::string::npos) return std::nullopt;
    const auto words = split_words(std::string_view(*text).substr(name_end + 1));
    // Fields 4 parent, 14 to 17 utime, stime, cutime, cstime, 22 start time; the name was field 2.
    if (words.size() < 20 || parse_number<std::uint64_t>(words[19]) != id.start_time) return std::nullopt;
    double ticks = 0;
    for (std::size_t field = 11; field <= 14; ++field)
        ticks += static_cast<double>(parse_number<std::uint64_t>(words[field]).value_or(0));
    return CpuLedger::Entry{id, parse_number<int>(words[1]).value_or(0), ticks / ticks_per_second()};
}

} // namespace affinityd::accounting
