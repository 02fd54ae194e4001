// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.hpp"

namespace affinityd {

namespace {

struct Range {
    unsigned char low, high;
    [[nodiscard]] bool holds(char c) const {
        const auto byte = static_cast<unsigned char>(c);
        return byte >= low && byte <= high;
    }
};

/// A row of the table: first byte, second byte, how many bytes in all. Third and fourth are always 80 to BF.
struct Form {
    Range first, second;
    std::size_t length;
};

constexpr Form forms[] = {{{0xC2, 0xDF}, {0x80, 0xBF}, 2}, {{0xE0, 0xE0}, {0xA0, 0xBF}, 3},
                          {{0xE1, 0xEC}, {0x80, 0xBF}, 3}, {{0xED, 0xED}, {0x80, 0x9F}, 3},
                          {{0xEE, 0xEF}, {0x80, 0xBF}, 3}, {{0xF0, 0xF0}, {0x90, 0xBF}, 4},
                          {{0xF1, 0xF3}, {0x80, 0xBF}, 4}, {{0xF4, 0xF4}, {0x80, 0x8F}, 4}};

/// Bytes of the character that the text begins with; 0 if it begins with none.
std::size_t character_length(std::string_view text) {
    constexpr Range plain{0x01, 0x7F}, following{0x80, 0xBF};
    if (plain.holds(text.front())) return 1;
    for (const auto& form : forms) {
        if (!form.first.holds(text.front())) continue;
        if (text.size() < form.length || !form.second.holds(text[1])) return 0;
        for (std::size_t i = 2; i < form.length; ++i)
            if (!following.holds(text[i])) return 0;
        return form.length;
    }
    return 0;
}

} // namespace

std::string valid_utf8(std::string_view text) {
    std::string valid;
    valid.reserve(text.size());
    std::size_t copied = 0; // up to here
    for (std::size_t at = 0; at < text.size();) {
        const auto length = character_length(text.substr(at));
        if (length == 0) {
            valid.append(text, copied, at - copied).append("\xef\xbf\xbd");
            copied = at + 1;
        }
        at += length == 0 ? 1 : length;
    }
    return valid.append(text, copied);
}

} // namespace affinityd
