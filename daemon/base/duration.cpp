// SPDX-License-Identifier: Apache-2.0
#include "base/duration.hpp"

#include "base/text.hpp"

#include <array>
#include <ranges>
#include <utility>

namespace affinityd {

namespace {

using std::chrono::milliseconds;
using Unit = std::pair<std::string_view, long long>;

/// Milliseconds; "ms" before the "s" that it ends with.
constexpr std::array<Unit, 5> units{
    {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
constexpr long long most = 86'400;

} // namespace

std::optional<milliseconds> parse_duration(std::string_view text) {
    long long factor = 1000;
    for (const auto& [unit, value] : units) {
        if (!text.ends_with(unit)) continue;
        factor = value;
        text.remove_suffix(unit.size());
        break;
    }
    const auto number = parse_number<long long>(text);
    if (!number || *number < 0 || *number > most) return std::nullopt;
    return milliseconds(*number * factor);
}

std::string to_text(milliseconds time) {
    if (time.count() == 0) return "0";
    for (const auto& [unit, value] : std::views::reverse(units))
        if (time.count() % value == 0) return std::to_string(time.count() / value).append(unit);
    return {};
}

} // namespace affinityd
