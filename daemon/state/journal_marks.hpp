// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace affinityd::state {

// Lines of the undo journal that are no records, so that a reader who does not know them assumes damage,
// which is on the safe side.
inline constexpr std::string_view damage_mark = "lines were lost";
inline constexpr std::string_view mended_mark = "lost lines are accounted for";

} // namespace affinityd::state
