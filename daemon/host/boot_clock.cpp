// SPDX-License-Identifier: Apache-2.0
#include "host/boot_clock.hpp"

#include "base/text.hpp"
#include "host/file.hpp"

#include <algorithm>
#include <ctime>

#include <unistd.h>

namespace affinityd::host {

std::uint64_t ticks_a_second() {
    static const auto ticks = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
    return ticks;
}

std::uint64_t ticks_since_boot() {
    constexpr std::uint64_t nanoseconds = 1'000'000'000;
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * ticks_a_second() +
           static_cast<std::uint64_t>(now.tv_nsec) * ticks_a_second() / nanoseconds;
}

const std::string& boot_id() {
    static const std::string id = [] {
        const auto text = read_file("/proc/sys/kernel/random/boot_id");
        return text && *text ? std::string(trim_text(**text)) : std::string();
    }();
    return id;
}

} // namespace affinityd::host
