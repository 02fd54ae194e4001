// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "task_rows.hpp"

#include <chrono>
#include <expected>
#include <functional>
#include <string>

namespace affinityctl {

/// Shows rows on the terminal until q: arrows and page keys scroll, s takes the next order, r reverses it,
/// space holds the picture. `look` is asked once per interval; what it answers instead of rows ends the watch
/// and is returned.
[[nodiscard]] std::expected<void, std::string>
run_watch_screen(std::chrono::milliseconds interval,
                 const std::function<std::expected<std::vector<TaskRow>, std::string>()>& look);

} // namespace affinityctl
