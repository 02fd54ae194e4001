// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace affinityd::state {

// Lines of the undo journal that are no records, so that a reader who does not know them assumes damage,
// which is on the safe side.
inline constexpr std::string_view damage_mark = "lines were lost";
inline constexpr std::string_view mended_mark = "lost lines are accounted for";
inline constexpr std::string_view none_given_mark = "no mask that was given is left";

/// The first line of each file, followed by the boot's id: what was changed before the machine was started
/// anew is not in force any more.
inline constexpr std::string_view header_begin = "of boot ";
/// With its line end; "": the boot has no id.
[[nodiscard]] std::string header();
/// True if the text has such a line of another boot. Files of earlier versions have none.
[[nodiscard]] bool is_of_another_boot(std::string_view text);

} // namespace affinityd::state
