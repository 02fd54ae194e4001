// SPDX-License-Identifier: Apache-2.0
#include "experiments/frame/quiet.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <thread>

#include <fmt/format.h>

namespace affinityd::experiments {

namespace {

/// Of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
struct CpuTimes {
    std::uint64_t all = 0, idle = 0, steal = 0;
};
constexpr std::size_t idle_field = 3, iowait_field = 4, steal_field = 7, counted_fields = 8;

std::map<unsigned, CpuTimes> cpu_times(std::string_view stat) {
    std::map<unsigned, CpuTimes> times;
    for (const auto line : split(stat, '\n')) {
        if (!line.starts_with("cpu")) continue;
        const auto words = split_words(line);
        const auto cpu = parse_number<unsigned>(words[0].substr(3));
        if (!cpu) continue; // the sum of all
        CpuTimes& time = times[*cpu];
        for (std::size_t i = 0; i < counted_fields && i + 1 < words.size(); ++i) {
            const auto ticks = parse_number<std::uint64_t>(words[i + 1]).value_or(0);
            time.all += ticks;
            if (i == idle_field || i == iowait_field) time.idle += ticks;
            if (i == steal_field) time.steal = ticks;
        }
    }
    return times;
}

/// Some counters go back now and then.
double grown(std::uint64_t first, std::uint64_t last) {
    return last > first ? static_cast<double>(last - first) : 0;
}

} // namespace

std::optional<Quiet> quiet_between(std::string_view first, std::string_view last, const CpuSet& cpus) {
    const auto before = cpu_times(first), after = cpu_times(last);
    Quiet quiet;
    double all = 0, busy = 0, stolen = 0;
    for (const unsigned cpu : cpus) {
        const auto from = before.find(cpu), to = after.find(cpu);
        if (from == before.end() || to == after.end()) continue;
        const double time = grown(from->second.all, to->second.all);
        if (time <= 0) continue;
        const double used = std::max(0.0, time - grown(from->second.idle, to->second.idle));
        all += time;
        busy += used;
        stolen += grown(from->second.steal, to->second.steal);
        if (used / time > quiet.busiest) {
            quiet.busiest = used / time;
            quiet.busiest_cpu = cpu;
        }
    }
    if (all <= 0) return std::nullopt;
    quiet.busy = busy / all;
    quiet.stolen = stolen / all;
    return quiet;
}

std::optional<Quiet> look_for_quiet(const host::Root& root, const CpuSet& cpus,
                                    std::chrono::milliseconds time) {
    const auto first = root.proc().read("stat");
    std::this_thread::sleep_for(time);
    const auto last = root.proc().read("stat");
    if (!first || !*first || !last || !*last) return std::nullopt;
    return quiet_between(**first, **last, cpus);
}

std::string remark_of(const Quiet& quiet) {
    if (quiet.is_enough()) return {};
    auto text = fmt::format("other programs keep these CPUs busy for {:.0f} % of the time (CPU {}: {:.0f} %)",
                            100 * quiet.busy, quiet.busiest_cpu, 100 * quiet.busiest);
    if (quiet.stolen > 0.02)
        text += fmt::format(", and a hypervisor took {:.0f} % for others", 100 * quiet.stolen);
    return text + ": figures vary more than on a quiet machine, and may be too high";
}

} // namespace affinityd::experiments
