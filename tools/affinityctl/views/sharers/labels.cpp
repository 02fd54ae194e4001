// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/sharers/labels.hpp"

#include "affinityctl/values/counted.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

namespace {

/// What the kernel saw of shared pages; "" where it is not asked to look.
std::string pages_remark(const SharersReport& report) {
    if (report.hinting == NumaHinting::off)
        return "Shared memory is seen only where one thread wakes another: NUMA hinting is off here (one "
               "node, or "
               "kernel.numa_balancing=0).";
    if (report.hinting == NumaHinting::hidden && report.has_ended) return {}; // nobody is left to be asked
    if (report.hinting == NumaHinting::hidden)
        return "NUMA hinting is on, but this kernel does not tell its groups.";
    std::map<unsigned, std::size_t> groups;
    for (const auto& [id, thread] : report.wakes.threads)
        if (thread.pages_group) ++groups[*thread.pages_group];
    std::string text;
    for (const auto& [group, threads] : groups)
        if (threads > 1)
            text +=
                (text.empty() ? "" : ", ") + fmt::format("{} (group {})", counted(threads, "thread"), group);
    return text.empty() ? "NUMA hinting has seen no two threads touch the same pages."
                        : "NUMA hinting has seen threads touch the same pages, once at least: " + text + ".";
}

std::string void_remark(const SharersReport& report) {
    const auto& level = report.suggestion.void_level;
    if (report.suggestion.policy.empty() || level.empty()) return {};
    return fmt::format("On this machine {} little: all its CPUs {}.",
                       report.suggestion.is_together ? "the policy changes" : "the rules change",
                       level == "llc" ? "share one cache group" : "are of one " + level);
}

std::string unnamed_remark(const SharersReport& report) {
    const auto without =
        std::ranges::count_if(report.suggestion.rules, [](const GroupRule& rule) { return !rule.choice; });
    if (without == 0 || report.suggestion.is_together) return {};
    return fmt::format(
        "For {} there is no rule: other threads have the same names, and their places are not in "
        "a row. Threads that are named apart can be told apart.",
        counted(static_cast<std::uint64_t>(without), "group"));
}

std::string index_remark(const SharersReport& report) {
    const auto& rules = report.suggestion.rules;
    const bool is_by_index =
        std::ranges::any_of(rules, [](const GroupRule& rule) { return rule.choice && rule.choice->index; });
    if (!is_by_index || report.suggestion.is_together || report.suggestion.policy.empty()) return {};
    return "Rules with index hold as long as the program makes its threads in the same order, and none "
           "before them "
           "ends.";
}

std::string place_words(const std::string& unit) { return unit.empty() ? "in no service" : "in " + unit; }

/// That another program was executed, or the process went elsewhere: the policy means what it is now.
std::string change_remark(const WatchedProcess& process) {
    const auto& name = process.former_name;
    const auto& unit = process.former_unit;
    if (!name && !unit) return {};
    const auto part = [](const std::string& before, const std::string& now) {
        return before + " when the watch began and is " + now + " now";
    };
    std::string text;
    if (name) text = part("called " + *name, "called " + process.name);
    if (unit) text += (name ? ", and it was " : "") + part(place_words(*unit), place_words(process.unit));
    return "The process was " + text +
           ": what it did before counts, too, and names of the policy are those of now.";
}

/// Where there were too many wake-ups to look at each.
std::string samples_remark(const Wakes& wakes) {
    if (wakes.heaviest <= 1) return {};
    return "There are more than some 65,000 wake-ups a second on a CPU: to slow the program less, only a "
           "quarter of the time was watched, and much of it by samples, so that one wake-up stands for up "
           "to " +
           grouped(wakes.heaviest) +
           ", and its pair counts as one that is too seldom unless some ten of them were seen.";
}

} // namespace

std::string headline_of(const SharersReport& report) {
    return fmt::format("{:.1f} s of {} (process {}): {} wake-ups among {}", report.wakes.seconds,
                       report.process.name.empty() ? "-" : report.process.name, report.process.pid,
                       grouped(report.graph.wakes), counted(report.wakes.threads.size(), "thread"));
}

std::string label_of(const SharersReport& report, const Wakes::Thread& thread) {
    const auto found = report.wakes.threads.find(thread);
    const bool is_known = found != report.wakes.threads.end();
    const std::string name = is_known && !found->second.name.empty() ? found->second.name : "-";
    const bool lives = is_known && found->second.index && !report.has_ended;
    return fmt::format("{} ({}{})", name, thread.tid, lives || report.has_ended ? "" : ", ended");
}

std::string rate_text(double per_second) {
    if (per_second >= 9.95) return grouped(static_cast<std::uint64_t>(per_second + 0.5)) + "/s";
    return per_second > 0 && per_second < 0.05 ? "<0.1/s" : fmt::format("{:.1f}/s", per_second);
}

std::vector<std::string> remarks_of(const SharersReport& report) {
    std::vector<std::string> remarks;
    if (report.has_ended) remarks.emplace_back("The process has ended meanwhile.");
    if (auto remark = change_remark(report.process); !remark.empty()) remarks.push_back(std::move(remark));
    if (report.graph.weak_pairs > 0)
        remarks.push_back(fmt::format(
            "{} woke each other too seldom, or too small a part of the time, to belong together ({}).",
            counted(report.graph.weak_pairs, "pair of threads", "pairs of threads"),
            counted(report.graph.weak_wakes, "wake-up")));
    if (auto remark = samples_remark(report.wakes); !remark.empty()) remarks.push_back(std::move(remark));
    if (report.wakes.lost > 0)
        remarks.push_back(counted(report.wakes.lost, "wake-up") +
                          " found no room in the table of pairs and are left out: there are too many pairs.");
    if (report.wakes.unnamed > 0)
        remarks.emplace_back("There are more threads than the table has room for: of some, the name and the "
                             "wake-ups by interrupts and by other programs are not known, so that SHARE is "
                             "too high.");
    for (const auto& remark :
         {pages_remark(report), unnamed_remark(report), index_remark(report), void_remark(report)})
        if (!remark.empty()) remarks.push_back(remark);
    return remarks;
}

} // namespace affinityctl
