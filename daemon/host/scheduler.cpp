// SPDX-License-Identifier: Apache-2.0
#include "host/scheduler.hpp"

#include <cerrno>
#include <vector>

#include <sched.h>
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

} // namespace affinityd::host
