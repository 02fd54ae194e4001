// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/activity.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "irq/reader.hpp"

#include <algorithm>
#include <array>

#include <unistd.h>

namespace affinityd::ttcp {

using measure::CpuReport;
using measure::LineReport;

namespace {

double grown(double first, double last) { return std::max(0.0, last - first); }

const CpuTime* find_cpu(const Activity& activity, unsigned cpu) {
    const auto at = std::find_if(activity.cpus.begin(), activity.cpus.end(),
                                 [&](const CpuTime& time) { return time.cpu == cpu; });
    return at == activity.cpus.end() ? nullptr : &*at;
}

/// Calls `take` with each line, a CPU and the number of interrupts that it took there, where there were any.
template <class Take>
void each_interrupt(const Activity& first, const Activity& last, Take take) {
    for (const auto& line : last.interrupts.irqs) {
        const auto* before = first.interrupts.find(line.number);
        if (before == nullptr || before->actions != line.actions) continue;
        for (std::size_t column = 0; column < line.counts.size() && column < last.interrupts.cpus.size();
             ++column) {
            const unsigned cpu = last.interrupts.cpus[column];
            const auto& columns = first.interrupts.cpus;
            const auto same =
                static_cast<std::size_t>(std::find(columns.begin(), columns.end(), cpu) - columns.begin());
            if (same < columns.size() && same < before->counts.size() &&
                line.counts[column] > before->counts[same])
                take(line, cpu, line.counts[column] - before->counts[same]);
        }
    }
}

} // namespace

std::vector<CpuTime> parse_cpu_times(std::string_view text, double ticks_per_second) {
    std::vector<CpuTime> result;
    for (const auto line : split(text, '\n')) {
        if (!line.starts_with("cpu")) continue;
        const auto words = split_words(line);
        const auto number = parse_number<unsigned>(words.front().substr(3));
        if (!number || *number > CpuSet::max_cpu) continue;
        std::array<double, 8> columns{};
        bool is_whole = words.size() >= 5;
        for (std::size_t i = 1; i < words.size() && i <= columns.size(); ++i) {
            const auto ticks = parse_number<std::uint64_t>(words[i]);
            is_whole = is_whole && ticks;
            columns[i - 1] = static_cast<double>(ticks.value_or(0)) / ticks_per_second;
        }
        if (!is_whole) continue;
        result.push_back({*number, columns[0], columns[1], columns[2], columns[3], columns[4], columns[5],
                          columns[6], columns[7]});
    }
    return result;
}

Activity read_activity(const host::Root& root) {
    Activity activity;
    activity.at = monotonic_seconds();
    const auto ticks = static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
    if (const auto text = root.proc().read("stat"); text && *text)
        activity.cpus = parse_cpu_times(**text, ticks);
    if (const auto text = root.proc().read("interrupts"); text && *text)
        activity.interrupts = irq::parse_interrupts(**text);
    if (const auto text = root.proc().read("softirqs"); text && *text)
        activity.softirqs = parse_softirqs(**text);
    return activity;
}

std::vector<CpuReport> cpus_between(const Activity& first, const Activity& last) {
    std::vector<CpuReport> result;
    for (const auto& now : last.cpus) {
        const auto* before = find_cpu(first, now.cpu);
        if (before == nullptr) continue;
        result.push_back({now.cpu, grown(before->user + before->nice, now.user + now.nice),
                          grown(before->system, now.system), grown(before->irq, now.irq),
                          grown(before->softirq, now.softirq), 0});
    }
    each_interrupt(first, last, [&](const irq::Irq&, unsigned cpu, std::uint64_t count) {
        const auto at = std::find_if(result.begin(), result.end(),
                                     [&](const CpuReport& report) { return report.cpu == cpu; });
        if (at != result.end()) at->interrupts += count;
    });
    return result;
}

std::vector<LineReport> lines_between(const Activity& first, const Activity& last) {
    std::vector<LineReport> result;
    each_interrupt(first, last, [&](const irq::Irq& line, unsigned cpu, std::uint64_t count) {
        std::string label;
        for (const auto& action : line.actions)
            label += (label.empty() ? "" : ", ") + action;
        result.push_back({line.number, label.substr(0, 256), cpu, count});
    });
    return result;
}

std::optional<double> busy_between(const Activity& first, const Activity& last) {
    double busy = 0, all = 0;
    for (const auto& now : last.cpus) {
        const auto* before = find_cpu(first, now.cpu);
        if (before == nullptr) continue;
        const double used = grown(before->busy(), now.busy());
        busy += used;
        all += used + grown(before->idle + before->iowait, now.idle + now.iowait);
    }
    if (all <= 0) return std::nullopt;
    return busy / all;
}

SoftirqCounts parse_softirqs(std::string_view text) {
    SoftirqCounts counts;
    for (const auto line : split(text, '\n')) {
        const auto colon = line.find(':');
        if (colon == std::string_view::npos) continue; // the heading, with the CPUs
        std::uint64_t sum = 0;
        bool is_whole = true;
        const auto words = split_words(line.substr(colon + 1));
        for (const auto word : words) {
            const auto count = parse_number<std::uint64_t>(word);
            is_whole = is_whole && count;
            sum += count.value_or(0);
        }
        const auto kind = trim_text(line.substr(0, colon));
        if (is_whole && !words.empty() && !kind.empty()) counts.emplace_back(kind, sum);
    }
    return counts;
}

} // namespace affinityd::ttcp
