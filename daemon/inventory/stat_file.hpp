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

/// The line in `path` below `dir`, read into `buffer` (the line points into it); nothing: gone, or no such
/// line.
[[nodiscard]] std::optional<StatLine> read_stat(const host::Dir& dir, const std::string& path,
                                                StatBuffer& buffer);

/// A thread of `pid` from its line, with its present mask.
[[nodiscard]] Thread make_thread(const host::Root& root, int pid, const StatLine& line);

} // namespace affinityd::inventory
