// SPDX-License-Identifier: Apache-2.0
#include "state/journal_marks.hpp"

#include "host/boot_clock.hpp"
#include "state/journal_line.hpp"

#include <algorithm>
#include <array>

namespace affinityd::state {

namespace {

constexpr std::size_t id_length = 36;

/// As the kernel writes it: 00000000-0000-4000-8000-000000000000.
bool is_id(std::string_view text) {
    constexpr std::array<std::size_t, 4> dashes{8, 13, 18, 23};
    if (text.size() != id_length) return false;
    for (std::size_t i = 0; i < id_length; ++i) {
        const bool is_dash = std::ranges::find(dashes, i) != dashes.end();
        const bool is_digit = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
        if (is_dash ? text[i] != '-' : !is_digit) return false;
    }
    return true;
}

/// Two ids of boots differ in nearly all of their digits: one that differs in a few is the other, damaged.
bool is_nearly(std::string_view id, std::string_view other) {
    constexpr int few = 8;
    int differences = id.size() == other.size() ? 0 : few + 1;
    for (std::size_t i = 0; differences <= few && i < id.size(); ++i)
        differences += id[i] != other[i] ? 1 : 0;
    return differences <= few;
}

/// The id in a line with a good checksum, also where the line end before it is damaged; "": it is no such
/// line.
std::string_view proven_id(std::string_view line) {
    const auto begin = line.rfind(header_begin);
    if (begin == std::string_view::npos) return {};
    const auto fields = fields_of(line.substr(begin));
    return fields.size() == 1 ? fields[0].substr(header_begin.size()) : std::string_view();
}

std::string_view take_line(std::string_view& text) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return line;
}

} // namespace

std::string header_of(std::string_view boot_id) {
    const auto line = std::string(header_begin).append(boot_id);
    return line + '\n' + LineWriter(line).finish();
}

std::string header() { return host::boot_id().empty() ? std::string() : header_of(host::boot_id()); }

FileBoot boot_of(std::string_view text) {
    const auto& ours = host::boot_id();
    if (ours.empty() || text.starts_with(header())) return FileBoot::ours;
    const auto first = take_line(text);
    const auto second = take_line(text);
    for (const auto line : {first, second})
        if (const auto id = proven_id(line); !id.empty())
            return id == ours ? FileBoot::damaged : FileBoot::another;
    if (!first.starts_with(header_begin)) return FileBoot::ours;
    const auto id = first.substr(header_begin.size());
    if (!is_id(id)) return FileBoot::damaged;
    if (id != ours) return is_nearly(id, ours) ? FileBoot::damaged : FileBoot::another;
    // Earlier versions wrote one line.
    const bool are_two = second.starts_with(header_begin) || second.find(ours) != std::string_view::npos;
    return are_two ? FileBoot::damaged : FileBoot::ours;
}

bool is_header_line(std::string_view line) {
    constexpr std::size_t longest = header_begin.size() + id_length + 1 + 8;
    return line.starts_with(header_begin) && line.size() <= longest;
}

Error header_damage(const std::string& path) {
    return {"its first lines, which name the boot, are damaged: the lines after them were used", path};
}

} // namespace affinityd::state
