// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace affinityd::host {

/// The inode of the socket that an entry of /proc/PID/fd leads to, which is not opened; no value: it leads to
/// something else, or is gone. `folder` and `link` as readlinkat(2) has them.
[[nodiscard]] std::optional<std::uint64_t> socket_inode(int folder, const std::string& link);

} // namespace affinityd::host
