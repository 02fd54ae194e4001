// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

namespace affinityctl {

/// Wake-ups that this program makes of itself, so that it can be seen whether they are counted as what they
/// are. Not every one is one: who has not slept yet is not woken.
struct KnownWakes {
    static constexpr int by_task = 40; ///< this thread and another one wake each other so often at most
    static constexpr int by_timer = 6; ///< and a timer wakes the other one so often
    int other = 0;                     ///< thread id of the other one
};

/// Takes some milliseconds. An Error: no thread, or no pipe.
[[nodiscard]] affinityd::Result<KnownWakes> make_known_wakes();

} // namespace affinityctl
