// SPDX-License-Identifier: Apache-2.0
#include "experiments/frame/miss_counter.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace affinityd::experiments {

namespace {

constexpr std::uint64_t event_of(std::uint64_t result) {
    return PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8U | result << 16U;
}

/// `group`: the counter that it shares the hardware with, -1: none.
host::Fd open_cache_counter(std::uint64_t result, int group) {
    perf_event_attr attributes;
    std::memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_HW_CACHE;
    attributes.config = event_of(result);
    attributes.exclude_hv = 1;
    attributes.exclude_kernel = 1;
    attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    return host::Fd(
        static_cast<int>(::syscall(SYS_perf_event_open, &attributes, 0, -1, group, PERF_FLAG_FD_CLOEXEC)));
}

std::optional<std::uint64_t> scaled_count(const host::Fd& counter) {
    struct {
        std::uint64_t value, enabled, running;
    } reading{};
    if (::read(counter.get(), &reading, sizeof reading) != sizeof reading || reading.running == 0)
        return std::nullopt;
    const auto scale = static_cast<double>(reading.enabled) / static_cast<double>(reading.running);
    return static_cast<std::uint64_t>(static_cast<double>(reading.value) * scale);
}

std::string why_not(int code) {
    const std::string head = "no hardware counters here: ";
    switch (code) {
    case ENOENT:
    case EOPNOTSUPP:
    case ENODEV:
        return head + "this machine has none, as most virtual ones, or none for the first-level cache";
    case EACCES:
    case EPERM:
        return head + "this program may not use them (kernel.perf_event_paranoid); root may";
    case ENOSYS:
        return head + "this kernel has no perf events";
    default:
        return head + std::strerror(code);
    }
}

} // namespace

std::expected<MissCounter, std::string> MissCounter::open() {
    auto reads = open_cache_counter(PERF_COUNT_HW_CACHE_RESULT_ACCESS, -1);
    if (!reads) return std::unexpected(why_not(errno));
    auto misses = open_cache_counter(PERF_COUNT_HW_CACHE_RESULT_MISS, reads.get());
    if (!misses) return std::unexpected(why_not(errno));
    return MissCounter(std::move(reads), std::move(misses));
}

std::optional<CacheReads> MissCounter::read() const {
    const auto reads = scaled_count(reads_), misses = scaled_count(misses_);
    if (!reads || !misses) return std::nullopt;
    return CacheReads{*reads, *misses};
}

} // namespace affinityd::experiments
