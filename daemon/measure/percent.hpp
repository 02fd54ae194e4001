// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace affinityd::measure {

// Parts of a whole as people read them. What rounds to zero has no minus: nobody knows what "-0 %" is less
// than.

/// "35.2" of 0.352, with one digit.
[[nodiscard]] std::string percent(double part, int digits);
/// "+35.2"
[[nodiscard]] std::string signed_percent(double part, int digits);

} // namespace affinityd::measure
