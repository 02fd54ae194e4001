// SPDX-License-Identifier: Apache-2.0
#include "base/escape.hpp"

#include <algorithm>

namespace affinityd {

namespace {

constexpr bool is_in(std::uint32_t point, std::uint32_t first, std::uint32_t last) {
    return point >= first && point <= last;
}

constexpr bool acts(std::uint32_t point) {
    return point < 0x20 || is_in(point, 0x7f, 0x9f) || point == 0x061c || is_in(point, 0x200e, 0x200f) ||
           is_in(point, 0x2028, 0x202e) || is_in(point, 0x2066, 0x2069) || point == 0xfeff ||
           is_in(point, 0xfffe, 0xffff);
}

/// A character of one byte, other than NUL.
constexpr bool is_ascii(char c) { return static_cast<unsigned char>(c) - 1U < 0x7FU; }

constexpr bool is_plain(char c) { return c >= 0x20 && c < 0x7f; }

std::string number(std::string_view head, std::uint32_t value, unsigned digits) {
    constexpr std::string_view hex = "0123456789abcdef";
    std::string text(head);
    for (unsigned i = digits; i-- > 0;)
        text += hex[(value >> (i * 4)) & 0xfU];
    return text;
}

std::string written(std::uint32_t point) {
    if (point == '\n') return "\\n";
    if (point == '\t') return "\\t";
    if (point == '\r') return "\\r";
    return point < 0x80 ? number("\\x", point, 2) : number("\\u", point, 4);
}

std::string escape(std::string_view text, bool keeps_lines) {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        const char c = text.front();
        std::size_t length = 1;
        if (is_plain(c) || (c == '\n' && keeps_lines)) {
            result += c;
        } else {
            const auto found = first_character(text);
            length = std::max<std::size_t>(found.bytes, 1);
            if (found.bytes == 0)
                result += number("\\x", static_cast<unsigned char>(c), 2);
            else if (acts(found.point))
                result += written(found.point);
            else
                result += text.substr(0, length);
        }
        text.remove_prefix(length);
    }
    return result;
}

} // namespace

Utf8Character first_character(std::string_view text) {
    if (text.empty()) return {};
    const auto byte = [&](std::size_t at) {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at]));
    };
    const std::uint32_t lead = byte(0);
    if (lead < 0x80) return {1, lead};
    const std::size_t bytes = lead >= 0xF0 && lead <= 0xF4  ? 4
                              : lead >= 0xE0 && lead < 0xF0 ? 3
                              : lead >= 0xC2 && lead < 0xE0 ? 2
                                                            : 0;
    if (bytes == 0 || bytes > text.size()) return {};
    std::uint32_t point = lead & (0xFFU >> (bytes + 1));
    for (std::size_t at = 1; at < bytes; ++at) {
        if (!is_utf8_continuation(text[at])) return {};
        point = (point << 6U) | (byte(at) & 0x3FU);
    }
    const bool overlong = (bytes == 3 && point < 0x800) || (bytes == 4 && point < 0x10000);
    if (overlong || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return {};
    return {bytes, point};
}

std::string valid_utf8(std::string_view text) {
    std::string valid;
    valid.reserve(text.size());
    std::size_t copied = 0; // up to here
    for (std::size_t at = 0; at < text.size();) {
        if (is_ascii(text[at])) { // nearly all of a long text
            ++at;
            continue;
        }
        const auto found = first_character(text.substr(at));
        const bool is_fine = found.bytes > 0 && found.point != 0;
        if (!is_fine) {
            valid.append(text, copied, at - copied).append("\xef\xbf\xbd");
            copied = at + 1;
        }
        at += is_fine ? found.bytes : 1;
    }
    return valid.append(text, copied);
}

std::string escaped(std::string_view text) { return escape(text, false); }

std::string escaped_lines(std::string_view text) { return escape(text, true); }

std::string escaped_json(std::string document) {
    const auto is_other = [](char c) { return static_cast<unsigned char>(c) >= 0x7f; };
    if (std::ranges::none_of(document, is_other)) return document; // nearly always
    std::string result;
    result.reserve(document.size());
    for (std::string_view rest = document; !rest.empty();) {
        const auto found = is_other(rest.front()) ? first_character(rest) : Utf8Character{1, ' '};
        const auto length = std::max<std::size_t>(found.bytes, 1);
        if (found.bytes > 0 && acts(found.point))
            result += number("\\u", found.point, 4);
        else
            result += rest.substr(0, length);
        rest.remove_prefix(length);
    }
    return result;
}

} // namespace affinityd
