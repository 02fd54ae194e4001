// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace affinityd::measure {

/// Reads the members of one JSON object from another process, each exactly once, and keeps the first fault.
/// Nothing is read after a fault.
class ObjectReader {
  public:
    /// `name` is the object's own key, for messages; `value` and `fault` must outlive this object.
    ObjectReader(const nlohmann::json& value, std::string name, std::string& fault);
    /// Call last: a member that was not read is a fault.
    void finish();

    /// Text of at most 4,096 bytes without control characters.
    void read(const char* key, std::string& out);
    void read(const char* key, bool& out);
    /// A finite number from 0 to `most`.
    void read(const char* key, double& out, double most);
    /// A whole number that fits.
    template <std::unsigned_integral T>
    void read(const char* key, T& out, std::uint64_t most = std::numeric_limits<T>::max()) {
        if (const auto number = whole(key, most)) out = static_cast<T>(*number);
    }
    /// The same, or null.
    void read(const char* key, std::optional<std::uint64_t>& out);
    void read(const char* key, std::optional<double>& out, double most);
    /// The member for the caller to read; nullptr if it is null or at fault.
    [[nodiscard]] const nlohmann::json* read_any(const char* key);

    void complain(std::string_view key, const char* what);

  private:
    [[nodiscard]] const nlohmann::json* find(const char* key);
    [[nodiscard]] bool is_null(const char* key);
    [[nodiscard]] std::optional<std::uint64_t> whole(const char* key, std::uint64_t most);

    const nlohmann::json& value_;
    std::string name_;
    std::string& fault_;
    std::set<std::string, std::less<>> read_;
};

} // namespace affinityd::measure
