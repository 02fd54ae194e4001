// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>

#include <sys/resource.h>

namespace affinityd::experiments {

/// CPU time that this thread has used, in seconds: on a busy machine, what others take does not count.
[[nodiscard]] inline double thread_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// How often the scheduler has given this thread's CPU to another one while it wanted to go on.
[[nodiscard]] inline long preemptions() {
    rusage used{};
    ::getrusage(RUSAGE_THREAD, &used);
    return used.ru_nivcsw;
}

} // namespace affinityd::experiments
