// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace affinityd::host {
class Dir;
}

namespace affinityd::topology {

/// The greatest CPU or node number that is read: eight times the most that a kernel can be built for. It
/// bounds what a hostile recording can take in memory.
constexpr unsigned greatest_number = 65535;

/// The numbers of the entries called `prefix` and a number, ascending. An Error: they cannot be listed.
[[nodiscard]] Result<std::vector<unsigned>> numbered(const host::Dir& dir, std::string_view prefix);

} // namespace affinityd::topology
