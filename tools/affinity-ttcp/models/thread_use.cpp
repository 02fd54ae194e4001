// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/thread_use.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::ttcp {

ThreadUse::ThreadUse(const host::Root& root, const Testbed& testbed) : root_(root) {
    for (const auto& path : testbed.paths)
        for (const int tid : path.threads) {
            tids_.push_back(tid);
            counters_.emplace_back(tid);
        }
}

double ThreadUse::seconds() const {
    double sum = 0;
    for (const int tid : tids_)
        sum += seconds_of(tid);
    return sum;
}

std::optional<std::uint64_t> ThreadUse::cycles() const {
    std::uint64_t sum = 0;
    for (const auto& counter : counters_) {
        const auto count = counter.read();
        if (!count) return std::nullopt;
        sum += *count;
    }
    return sum;
}

/// schedstat counts nanoseconds; where the kernel has none (no CONFIG_SCHED_INFO), stat counts ticks.
double ThreadUse::seconds_of(int tid) const {
    const auto schedstat = root_.proc().text(fmt::format("{}/schedstat", tid));
    if (schedstat && !schedstat->empty())
        if (const auto spent = parse_number<std::uint64_t>(split_words(*schedstat).front()))
            return static_cast<double>(*spent) * 1e-9;
    const auto stat = root_.proc().text(fmt::format("{}/stat", tid)).value_or("");
    const auto words = split_words(std::string_view(stat).substr(std::min(stat.rfind(')') + 1, stat.size())));
    if (words.size() < 13) return 0; // utime and stime are fields 14 and 15, proc_pid_stat(5)
    const auto ticks = parse_number<std::uint64_t>(words[11]).value_or(0) +
                       parse_number<std::uint64_t>(words[12]).value_or(0);
    return static_cast<double>(ticks) / static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
}

} // namespace affinityd::ttcp
