// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

namespace affinityd {

/// CLOCK_MONOTONIC in seconds, clock_gettime(2); libstdc++'s steady clock reads that clock.
[[nodiscard]] inline double monotonic_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// CLOCK_BOOTTIME: since the boot, with the time that the machine slept; a clock that is set changes nothing.
[[nodiscard]] inline std::chrono::milliseconds time_since_boot() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::milliseconds(now.tv_nsec / 1'000'000);
}

/// CPU time that this thread has used (CLOCK_THREAD_CPUTIME_ID): what others take of a busy machine does not
/// count.
[[nodiscard]] inline std::chrono::nanoseconds thread_time() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

/// The span as sd-event and sd-bus take it: in microseconds; 0 for one that is over.
[[nodiscard]] constexpr std::uint64_t usec_of(std::chrono::microseconds span) {
    return span.count() > 0 ? static_cast<std::uint64_t>(span.count()) : 0;
}

} // namespace affinityd
