// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/document.hpp"
#include "base/cpu_set.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace affinityctl {

/// The same for a member, which may be missing.
[[nodiscard]] std::string text_of(const nlohmann::json& object, const char* key);

/// The texts of a list; "" for none.
[[nodiscard]] std::string joined(const nlohmann::json& list, std::string_view between);

/// How well tasks are placed, in one line, as a status or plan says; "" if it does not.
[[nodiscard]] std::string balance_line(const nlohmann::json& answer);

template <class T>
[[nodiscard]] nlohmann::json or_null(const std::optional<T>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json();
}
[[nodiscard]] nlohmann::json or_null(const std::string& text);
/// "0-3", or null where no set was read.
[[nodiscard]] nlohmann::json or_null(const std::optional<affinityd::CpuSet>& cpus);

} // namespace affinityctl
