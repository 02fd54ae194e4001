// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace affinityd::experiments {

/// A time as people say it, when it is an estimate: "under 1 s", "12 s", "3 min", "1 h 20 min".
[[nodiscard]] std::string time_words(double seconds);

} // namespace affinityd::experiments
