// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace affinityd::inventory {

/// Ranges of ports, both ends included.
using PortRanges = std::vector<std::pair<std::uint16_t, std::uint16_t>>;

/// The same ports, and perhaps some between them: ascending, apart from each other, and no more ranges than
/// `most`, the nearest of which have become one.
[[nodiscard]] PortRanges few_ranges(PortRanges ports, std::size_t most);

/// A program for INET_DIAG_REQ_BYTECODE (linux/inet_diag.h): the kernel passes over sockets whose local port
/// is in none of these ranges; empty for no ranges, which filters nothing.
[[nodiscard]] std::vector<std::byte> listener_filter(const PortRanges& ports);

} // namespace affinityd::inventory
