// SPDX-License-Identifier: Apache-2.0
#include "host/priority.hpp"

#include <cerrno>
#include <cstdint>

#include <linux/sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace affinityd::host {

namespace {

constexpr std::int32_t wanted_nice = -10;
constexpr std::uint64_t slice_ns = 100'000; // the shortest the kernel takes

/// struct sched_attr as far as it is used (SCHED_ATTR_SIZE_VER0): the kernel's header cannot stand beside the
/// C library's.
struct SchedAttr {
    std::uint32_t size = 48;
    std::uint32_t policy = 0; ///< SCHED_OTHER
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime = 0;
    std::uint64_t deadline = 0;
    std::uint64_t period = 0;
};
static_assert(sizeof(SchedAttr) == 48);

} // namespace

int prefer_low_latency() {
    SchedAttr wish;
    wish.flags = SCHED_FLAG_RESET_ON_FORK;
    wish.nice = wanted_nice;
    wish.runtime = slice_ns;
    return ::syscall(SYS_sched_setattr, 0, &wish, 0) == 0 ? 0 : errno;
}

int give_way() {
    if (::syscall(SYS_sched_getscheduler, 0) != SCHED_NORMAL)
        return 0; // it gives way more than that, or must not
    SchedAttr wish;
    wish.policy = SCHED_BATCH;
    wish.nice = ::getpriority(PRIO_PROCESS, 0); // of this thread
    wish.runtime = slice_ns;
    return ::syscall(SYS_sched_setattr, 0, &wish, 0) == 0 ? 0 : errno;
}

} // namespace affinityd::host
