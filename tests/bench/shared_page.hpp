// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace bench {

inline std::uint64_t now_ns() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
           static_cast<std::uint64_t>(time.tv_nsec);
}

/// Memory that the starter shares with the program that it starts, which inherits its descriptor under a
/// fixed number.
struct SharedPage {
    std::atomic<std::uint64_t> started; ///< just before execve(2)
    std::atomic<std::uint64_t> entered; ///< first line of main
    std::atomic<std::uint64_t> pinned;  ///< saw the wanted mask; 0: gave up
};
inline constexpr int shared_descriptor = 100;
inline constexpr std::uint64_t give_up_ns = 3'000'000'000U;

inline SharedPage* map_shared(int fd) {
    void* page = ::mmap(nullptr, sizeof(SharedPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return page == MAP_FAILED ? nullptr : static_cast<SharedPage*>(page);
}

/// True as soon as this thread may run on that CPU only; false after three seconds.
inline bool spin_until_pinned(int cpu) {
    const auto end = now_ns() + give_up_ns;
    unsigned long mask[128] = {};
    while (true) {
        mask[0] = 0;
        // The raw call: the wrapper of the C library would add its own time.
        const long length = ::syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
        if (length > 0 && mask[0] == 1UL << cpu) return true;
        if (now_ns() > end) return false;
    }
}

} // namespace bench
