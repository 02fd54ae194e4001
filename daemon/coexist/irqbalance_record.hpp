// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::coexist {

/// irqbalance's own lists of banned interrupts, by the name of its socket, each ascending.
using BannedLists = std::map<std::string, std::vector<unsigned>>;

/// One line for each socket: its name and its interrupts, divided by spaces.
[[nodiscard]] std::string print_record(const BannedLists& lists);
/// The reverse; what cannot be read is left out.
[[nodiscard]] BannedLists parse_record(std::string_view text);

} // namespace affinityd::coexist
