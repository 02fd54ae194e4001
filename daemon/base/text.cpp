// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

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

} // namespace affinityd
