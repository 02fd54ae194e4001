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

/// Each file begins with a line that names the boot, with a checksum: a change before the machine was started
/// anew is not in force any more.
inline constexpr std::string_view header_begin = "of boot ";
/// The line of this boot, with its line end; "": the boot has no id.
[[nodiscard]] std::string header();
[[nodiscard]] std::string header_of(std::string_view boot_id);

/// Of which boot a file is, by its first lines.
enum class FileBoot : std::uint8_t {
    ours,    ///< or empty
    damaged, ///< the line is, and does not prove that it is of another one
    another, ///< nothing in it is in force
};
[[nodiscard]] FileBoot boot_of(std::string_view text);
[[nodiscard]] bool is_header_line(std::string_view line);
/// What a person is told of such damage.
[[nodiscard]] Error header_damage(const std::string& path);

} // namespace affinityd::state
