// SPDX-License-Identifier: Apache-2.0
#include "host/scheduler.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace affinityd::host {

static_assert(sizeof(unsigned long) == sizeof(std::uint64_t),
              "masks are handed to the kernel as 64-bit words");

std::expected<CpuSet, int> get_affinity(int tid) {
    std::vector<std::uint64_t> words(16);
    while (true) {
        const long bytes =
            ::syscall(SYS_sched_getaffinity, tid, words.size() * sizeof words[0], words.data());
        if (bytes >= 0)
            return CpuSet::from_words({words.data(), static_cast<std::size_t>(bytes) / sizeof words[0]});
        if (errno != EINVAL || words.size() > CpuSet::max_cpu / 64) return std::unexpected(errno);
        words.resize(words.size() * 4); // EINVAL: the kernel has more CPUs than fit
    }
}

int set_affinity(int tid, const CpuSet& cpus) {
    const auto words = cpus.words();
    return ::syscall(SYS_sched_setaffinity, tid, words.size_bytes(), words.data()) == 0 ? 0 : errno;
}

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

namespace {

constexpr unsigned most_nodes = 1024; // MAX_NUMNODES of any configuration
constexpr unsigned bits = 8 * sizeof(unsigned long);
using NodeMask = std::array<unsigned long, most_nodes / bits>;

NodeMask mask_of(const std::vector<unsigned>& nodes) {
    NodeMask mask{};
    for (const unsigned node : nodes)
        if (node < most_nodes) mask[node / bits] |= 1UL << node % bits;
    return mask;
}

} // namespace

std::expected<long, int> migrate_pages(int pid, const std::vector<unsigned>& from,
                                       const std::vector<unsigned>& to) {
    const auto old_nodes = mask_of(from);
    const auto new_nodes = mask_of(to);
    // The kernel takes the number of bits plus one.
    const long left = ::syscall(SYS_migrate_pages, pid, most_nodes + 1UL, old_nodes.data(), new_nodes.data());
    if (left < 0) return std::unexpected(errno);
    return left;
}

std::expected<long, int> move_pages(int pid, std::uint64_t from, std::uint64_t to, std::uint64_t part,
                                    const std::vector<unsigned>& nodes) {
    constexpr int own_pages = 2; // MPOL_MF_MOVE, linux/mempolicy.h
    std::vector<std::uint64_t> addresses;
    std::vector<int> wanted;
    for (const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); from < to; from += page) {
        addresses.push_back(from);
        wanted.push_back(static_cast<int>(nodes[from / part % nodes.size()]));
    }
    std::vector<int> results(addresses.size(), 0);
    if (::syscall(SYS_move_pages, pid, addresses.size(), addresses.data(), wanted.data(), results.data(),
                  own_pages) < 0)
        return std::unexpected(errno);
    return std::ranges::count_if(results, [](int result) { return result == -EBUSY || result == -ENOMEM; });
}

} // namespace affinityd::host
