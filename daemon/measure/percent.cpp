// SPDX-License-Identifier: Apache-2.0
#include "measure/percent.hpp"

#include <array>
#include <charconv>
#include <string_view>
#include <system_error>

namespace affinityd::measure {

std::string percent(double part, int digits) {
    std::array<char, 400> text{}; // the largest double has 309 digits
    const auto [end, code] =
        std::to_chars(text.data(), text.data() + text.size(), 100 * part, std::chars_format::fixed, digits);
    if (code != std::errc{}) return "?";
    std::string_view found(text.data(), end);
    if (found.find_first_not_of("-0.") == std::string_view::npos && found.front() == '-')
        found.remove_prefix(1);
    return std::string(found);
}

std::string signed_percent(double part, int digits) {
    auto text = percent(part, digits);
    return text.front() == '-' ? text : "+" + text;
}

} // namespace affinityd::measure
