// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace affinityctl {

/// A value as a cell of a table; "-" for null and empty text.
[[nodiscard]] std::string cell(const nlohmann::json& value);

/// The same for a member, which may be missing.
[[nodiscard]] std::string text_of(const nlohmann::json& object, const char* key);

/// The texts of a list; "" for none.
[[nodiscard]] std::string joined(const nlohmann::json& list, std::string_view between);

/// How well tasks are placed, in one line, as a status or plan says; "" if it does not.
[[nodiscard]] std::string balance_line(const nlohmann::json& answer);

/// A document as every verb prints it. Names from drivers and files may not be UTF-8; bytes that
/// are not are replaced.
[[nodiscard]] std::string dump(const nlohmann::json& document, int indent = -1);

template <class T>
[[nodiscard]] nlohmann::json or_null(const std::optional<T>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json();
}
[[nodiscard]] nlohmann::json or_null(const std::string& text);
/// "0-3", or null where no set was read.
[[nodiscard]] nlohmann::json or_null(const std::optional<affinityd::CpuSet>& cpus);

} // namespace affinityctl
