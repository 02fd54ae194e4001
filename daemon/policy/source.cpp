// SPDX-License-Identifier: Apache-2.0
#include "policy/source.hpp"

#include <cstdint>

#include <fmt/format.h>

namespace affinityd::policy {

Source::Source(std::string_view text) : text_(text), starts_{0} {
    for (std::size_t at = 0; at < text.size(); ++at)
        if (text[at] == '\n') starts_.push_back(at + 1);
}

std::string_view Source::line(unsigned number) const {
    if (number == 0 || number > starts_.size()) return {};
    auto line = text_.substr(starts_[number - 1]);
    line = line.substr(0, line.find('\n'));
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
}

std::string_view Source::from(unsigned number, unsigned column) const {
    const auto whole = line(number);
    return column == 0 || column > whole.size() ? std::string_view{} : whole.substr(column - 1);
}

namespace {

/// Bytes of the UTF-8 character at the front and its code point; 0 bytes if it is none (RFC 3629).
struct Character {
    std::size_t bytes = 0;
    std::uint32_t point = 0;
};

Character decode(std::string_view text) {
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
        if ((byte(at) & 0xC0U) != 0x80U) return {};
        point = (point << 6U) | (byte(at) & 0x3FU);
    }
    const bool overlong = (bytes == 3 && point < 0x800) || (bytes == 4 && point < 0x10000);
    if (overlong || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return {};
    return {bytes, point};
}

bool is_control(std::uint32_t point) {
    return (point < 0x20 && point != '\t' && point != '\n' && point != '\r') ||
           (point >= 0x7F && point < 0xA0);
}

/// Line separators count as line ends for YAML readers but not for editors.
bool is_misleading(std::uint32_t point) {
    return (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069) || point == 0x2028 ||
           point == 0x2029 || point == 0xFEFF;
}

} // namespace

std::optional<BadByte> find_bad_byte(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const Character found = decode(text.substr(at));
        if (found.bytes == 0) {
            const auto byte = static_cast<unsigned char>(text[at]);
            return BadByte{at, fmt::format("byte 0x{:02x} is not UTF-8 text", byte)};
        }
        const bool lone_return = found.point == '\r' && text.substr(at, 2) != "\r\n";
        if (found.point == 0) return BadByte{at, "a NUL byte"};
        if (is_control(found.point) || lone_return)
            return BadByte{at, fmt::format("control character U+{:04X}", found.point)};
        if (is_misleading(found.point))
            return BadByte{at, fmt::format("character U+{:04X} changes how the line looks, not what it says",
                                           found.point)};
        at += found.bytes;
    }
    return std::nullopt;
}

} // namespace affinityd::policy
