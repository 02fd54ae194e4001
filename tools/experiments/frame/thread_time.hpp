// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.hpp"

#include <sys/resource.h>

namespace affinityd::experiments {

/// thread_time() in seconds.
[[nodiscard]] inline double thread_seconds() { return std::chrono::duration<double>(thread_time()).count(); }

/// How often the scheduler has given this thread's CPU to another one while it wanted to go on.
[[nodiscard]] inline long preemptions() {
    rusage used{};
    ::getrusage(RUSAGE_THREAD, &used);
    return used.ru_nivcsw;
}

} // namespace affinityd::experiments
