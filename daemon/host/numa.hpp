// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <vector>

namespace affinityd::host {

/// Moves the pages that a process has on nodes `from` to nodes `to`; migrate_pages(2). It takes as long as
/// copying them does. Nodes below 1024 count. The number of pages that could not be moved, or an errno value
/// (ESRCH: gone; EPERM; EINVAL: no node of `to` is there).
[[nodiscard]] std::expected<long, int> migrate_pages(int pid, const std::vector<unsigned>& from,
                                                     const std::vector<unsigned>& to);

} // namespace affinityd::host
