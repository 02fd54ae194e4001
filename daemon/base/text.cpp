// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <ranges>
#include <utility>

namespace affinityd {

std::string_view trim_text(std::string_view text) {
    using namespace std::string_view_literals;
    constexpr auto spaces = " \t\r\n\0"sv;
    const auto first = text.find_first_not_of(spaces);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(spaces) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const auto at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

std::vector<std::string_view> split_words(std::string_view text) {
    std::vector<std::string_view> words;
    while (true) {
        const auto first = text.find_first_not_of(" \t");
        if (first == std::string_view::npos) return words;
        text.remove_prefix(first);
        const auto end = text.find_first_of(" \t");
        words.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return words;
        text.remove_prefix(end);
    }
}

namespace {

using std::chrono::milliseconds;
using Unit = std::pair<std::string_view, long long>;

/// Milliseconds; "ms" before the "s" that it ends with.
constexpr std::array<Unit, 5> units{
    {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
constexpr double most = 86'400;

} // namespace

std::optional<milliseconds> parse_duration(std::string_view text) {
    long long factor = 1000;
    for (const auto& [unit, value] : units) {
        if (!text.ends_with(unit)) continue;
        factor = value;
        text.remove_suffix(unit.size());
        break;
    }
    double number = -1; // stays so where it is none
    const auto* const last = text.data() + text.size();
    const auto end = std::from_chars(text.data(), last, number, std::chars_format::fixed).ptr;
    if (end != last || !(number >= 0 && number <= most)) return std::nullopt;
    return milliseconds(std::llround(number * static_cast<double>(factor)));
}

std::string to_text(milliseconds time) {
    if (time.count() == 0) return "0";
    for (const auto& [unit, value] : std::views::reverse(units))
        if (time.count() % value == 0) return std::to_string(time.count() / value).append(unit);
    return {};
}

} // namespace affinityd
