// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/task_row.hpp"

#include <chrono>
#include <expected>
#include <functional>
#include <string>

namespace affinityctl {

/// Shows rows on the terminal until q. Arrow and page keys scroll, s takes the next order, r reverses it,
/// space pauses. `look` is called once per interval; if it returns an error, the watch ends with that.
[[nodiscard]] std::expected<void, std::string>
run_watch_screen(std::chrono::milliseconds interval,
                 const std::function<std::expected<std::vector<TaskRow>, std::string>()>& look);

} // namespace affinityctl
