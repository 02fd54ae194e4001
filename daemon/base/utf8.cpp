// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.hpp"

namespace affinityd {

namespace {

/// A character of one byte, other than NUL.
constexpr bool is_ascii(char c) { return static_cast<unsigned char>(c) - 1U < 0x7FU; }

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

} // namespace affinityd
