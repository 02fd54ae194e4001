// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace affinityd::inventory {

/// What is used of a /proc/PID/stat or /proc/PID/task/TID/stat line; proc_pid_stat(5).
struct StatLine {
    int id = 0; ///< field 1: the process or thread
    std::string_view
        comm;           ///< field 2 without its parentheses, as the kernel escaped it; points into the text
    char state = '?';   ///< field 3
    int parent = 0;     ///< field 4: the parent's process id, 0 if none
    int session = 0;    ///< field 6: getsid(2), 0 if it is not of this PID namespace
    unsigned flags = 0; ///< field 9: PF_ bits
    long threads = 0;   ///< field 20
    std::uint64_t start_time = 0; ///< field 22, clock ticks since boot
    /// It has ended and only waits to be collected ('Z') or is just leaving ('X'): it cannot be placed.
    [[nodiscard]] bool is_dead() const { return state == 'Z' || state == 'X' || state == 'x'; }
};

/// The name may hold spaces and parentheses, so it reaches from the first '(' to the last ')'. No value: no
/// such line.
[[nodiscard]] std::optional<StatLine> parse_stat(std::string_view text);

/// What such a line says of the time that a task took; clock ticks.
struct StatTimes {
    int parent = 0;                    ///< field 4
    std::uint64_t user = 0;            ///< field 14
    std::uint64_t system = 0;          ///< field 15
    std::uint64_t children_user = 0;   ///< field 16: of children that were waited for
    std::uint64_t children_system = 0; ///< field 17
    std::uint64_t start_time = 0;      ///< field 22, since boot
    std::optional<int> cpu; ///< field 39: where it runs or ran last; no value in a line that was cut
};
[[nodiscard]] std::optional<StatTimes> parse_stat_times(std::string_view text);

/// The name as the task has it: the kernel writes a line end as "\n" and a backslash as "\\"
/// (proc_task_name(), fs/proc/array.c).
[[nodiscard]] std::string unescape_comm(std::string_view text);

} // namespace affinityd::inventory
