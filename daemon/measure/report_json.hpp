// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/result.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace affinityd::measure {

/// Parts of reports as JSON, for every document that has them.

template <class T>
[[nodiscard]] nlohmann::json or_null(const std::optional<T>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

[[nodiscard]] nlohmann::json to_json(const std::vector<CpuReport>& cpus);
[[nodiscard]] nlohmann::json to_json(const std::vector<LineReport>& lines);

} // namespace affinityd::measure
