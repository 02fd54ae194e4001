// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"
#include "inventory/stat.hpp"
#include "inventory/task.hpp"

#include <array>
#include <optional>
#include <string>

namespace affinityd::inventory {

using StatBuffer = std::array<char, 2048>; ///< a line has at most 64 bytes of name and 52 numbers

/// The line in `path` below `dir`, read into `buffer` (the line points into it). No value: the task is gone,
/// or the text is no such line. An Error: the file is there and cannot be opened or read (EMFILE, EACCES).
[[nodiscard]] Result<std::optional<StatLine>> read_stat(const host::Dir& dir, const std::string& path,
                                                        StatBuffer& buffer);

/// The present mask of a thread; empty if it cannot be read. On this machine it is what sched_getaffinity(2)
/// answers, so without offline CPUs; in a recording it is Cpus_allowed_list.
[[nodiscard]] CpuSet read_mask(const host::Root& root, int pid, int tid);

/// A thread of `pid` from its line, with its present mask.
[[nodiscard]] Thread make_thread(const host::Root& root, int pid, const StatLine& line);

} // namespace affinityd::inventory
