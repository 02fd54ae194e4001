// SPDX-License-Identifier: Apache-2.0
#include "policy/source.hpp"

#include "base/escape.hpp"

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
        const auto found = first_character(text.substr(at));
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
