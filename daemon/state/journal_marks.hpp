// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace affinityd::state {

// Lines of the undo journal that are no records, so that a reader who does not know them assumes damage,
// which is on the safe side.
inline constexpr std::string_view damage_mark = "lines were lost";
inline constexpr std::string_view mended_mark = "lost lines are accounted for";
inline constexpr std::string_view none_given_mark = "no mask that was given is left";

/// Each file begins with two lines that name the boot, since what was changed before the machine was started
/// anew is not in force any more: one that earlier versions read, too, and the same with a checksum.
inline constexpr std::string_view header_begin = "of boot ";
/// Both, with their line ends, of this boot; "": it has no id.
[[nodiscard]] std::string header();
[[nodiscard]] std::string header_of(std::string_view boot_id);

/// Of which boot a file is, by its first lines.
enum class FileBoot : std::uint8_t {
    ours,    ///< or of an earlier version, that wrote no boot
    damaged, ///< the lines are, and do not prove that it is of another one
    another, ///< nothing in it is in force
};
[[nodiscard]] FileBoot boot_of(std::string_view text);
/// Of the first lines, damaged or not. What is longer has lost its line end, and a record with it.
[[nodiscard]] bool is_header_line(std::string_view line);
/// What a person is told of such damage.
[[nodiscard]] Error header_damage(const std::string& path);

} // namespace affinityd::state
