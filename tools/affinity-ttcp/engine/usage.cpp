// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/usage.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <cstring>

#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>

namespace affinityd::ttcp {

namespace {

constexpr std::array<CounterKind, 4> events{{{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
                                             {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
                                             {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
                                             {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS}}};

/// proc_pid_sched has "se.nr_migrations   :   12" where the kernel is built with CONFIG_SCHED_DEBUG.
std::optional<std::uint64_t> migrations_by_file() {
    const auto root = host::Root::open();
    const auto text = root ? root->proc().text("self/sched") : std::nullopt;
    if (!text) return std::nullopt;
    for (const auto line : split(*text, '\n')) {
        if (!line.starts_with("se.nr_migrations")) continue;
        const auto colon = line.find(':');
        if (colon != std::string_view::npos)
            return parse_number<std::uint64_t>(trim_text(line.substr(colon + 1)));
    }
    return std::nullopt;
}

double seconds_of(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

std::optional<std::uint64_t> difference(std::optional<std::uint64_t> later,
                                        std::optional<std::uint64_t> earlier) {
    if (!later || !earlier || *later < *earlier) return std::nullopt;
    return *later - *earlier;
}

} // namespace

host::Fd open_counter(const CounterKind& kind, int tid) {
    perf_event_attr attributes;
    std::memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    attributes.type = kind.type;
    attributes.config = kind.config;
    attributes.exclude_hv = 1;
    attributes.exclude_kernel = kind.in_kernel ? 0 : 1;
    attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    return host::Fd(static_cast<int>(
        ::syscall(SYS_perf_event_open, &attributes, tid, -1, kind.group, PERF_FLAG_FD_CLOEXEC)));
}

std::optional<std::uint64_t> read_counter(const host::Fd& counter) {
    struct {
        std::uint64_t value, enabled, running;
    } reading{};
    if (!counter || ::read(counter.get(), &reading, sizeof reading) != sizeof reading) return std::nullopt;
    if (reading.running == 0) return reading.enabled == 0 ? std::optional(reading.value) : std::nullopt;
    const auto scale = static_cast<double>(reading.enabled) / static_cast<double>(reading.running);
    return static_cast<std::uint64_t>(static_cast<double>(reading.value) * scale);
}

void add_known(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& part) {
    if (sum && part)
        *sum += *part;
    else
        sum.reset();
}

Usage& Usage::operator+=(const Usage& other) {
    user_seconds += other.user_seconds;
    system_seconds += other.system_seconds;
    voluntary_switches += other.voluntary_switches;
    involuntary_switches += other.involuntary_switches;
    add_known(migrations, other.migrations);
    add_known(cycles, other.cycles);
    add_known(instructions, other.instructions);
    add_known(cache_misses, other.cache_misses);
    return *this;
}

CycleCounter::CycleCounter(int tid) : counter_(open_counter(events[0], tid)) {}

std::optional<std::uint64_t> CycleCounter::read() const { return read_counter(counter_); }

/// Each open event makes every context switch dearer, so migrations are counted by one only where no file
/// tells them.
Meter::Meter() : has_file_(migrations_by_file().has_value()) {
    for (std::size_t i = 0; i < events.size(); ++i)
        if (i != 3 || !has_file_) counters_[i] = open_counter(events[i]);
}

Meter::Reading Meter::read() const {
    Reading reading;
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    reading.usage.user_seconds = seconds_of(used.ru_utime);
    reading.usage.system_seconds = seconds_of(used.ru_stime);
    reading.usage.voluntary_switches = static_cast<std::uint64_t>(used.ru_nvcsw);
    reading.usage.involuntary_switches = static_cast<std::uint64_t>(used.ru_nivcsw);
    for (std::size_t i = 0; i < counters_.size(); ++i)
        reading.counts[i] = read_counter(counters_[i]);
    if (has_file_) reading.counts[3] = migrations_by_file();
    return reading;
}

void Meter::start() { first_ = read(); }

Usage Meter::stop() {
    const auto last = read();
    Usage used = last.usage;
    used.user_seconds -= first_.usage.user_seconds;
    used.system_seconds -= first_.usage.system_seconds;
    used.voluntary_switches -= first_.usage.voluntary_switches;
    used.involuntary_switches -= first_.usage.involuntary_switches;
    used.cycles = difference(last.counts[0], first_.counts[0]);
    used.instructions = difference(last.counts[1], first_.counts[1]);
    used.cache_misses = difference(last.counts[2], first_.counts[2]);
    used.migrations = difference(last.counts[3], first_.counts[3]);
    return used;
}

} // namespace affinityd::ttcp
