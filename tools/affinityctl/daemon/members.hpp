// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

/// Members of the daemon's answers. One that is missing, or of another type, is empty or 0.
[[nodiscard]] std::string text(const nlohmann::json& object, const char* key);
[[nodiscard]] std::uint64_t count(const nlohmann::json& object, const char* key);
[[nodiscard]] const nlohmann::json& list(const nlohmann::json& object, const char* key);
[[nodiscard]] affinityd::CpuSet cpus(const nlohmann::json& object, const char* key);
[[nodiscard]] nlohmann::json member(const nlohmann::json& object, const char* key);

} // namespace affinityctl
