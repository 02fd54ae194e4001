// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/task_row.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace affinityctl {

/// Columns of `watch`, and the cells of one row under them.
inline const std::vector<std::string> watch_heading{"PID",  "TID",   "NAME",   "POLICY", "ON CPU",
                                                    "MASK", "SHARE", "MIGR/S", "STATE"};
[[nodiscard]] std::vector<std::string> watch_cells(const TaskRow& row);

/// What `watch --once` prints.
[[nodiscard]] std::string watch_table(const std::vector<TaskRow>& rows, bool color);
/// What `watch --json` prints, a list.
[[nodiscard]] nlohmann::json watch_json(const std::vector<TaskRow>& rows);

} // namespace affinityctl
