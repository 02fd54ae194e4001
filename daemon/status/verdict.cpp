// SPDX-License-Identifier: Apache-2.0
// The verdict of a status.
#include "base/text.hpp"
#include "status/json.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityd::status {

namespace {

/// States of which there are findings.
constexpr std::array told{
    std::pair("refused", Ailment::refused),           std::pair("fought over", Ailment::fight),
    std::pair("outside its cpuset", Ailment::cpuset), std::pair("drifted", Ailment::drifted),
    std::pair("not in place", Ailment::not_in_place), std::pair("on another CPU", Ailment::vector),
    std::pair("immovable", Ailment::immovable),
};

std::string name_of(const QueueStatus& queue) {
    const auto* irq = std::get_if<planner::IrqMask>(&queue.subject);
    const auto name = irq == nullptr ? to_json(queue.subject).value("queue", "")
                                     : fmt::format("IRQ {} {}", irq->irq, irq->label);
    return name + (queue.nic.empty() ? "" : " of " + queue.nic);
}

/// "drift/web": the kind, and the policy, file or interface.
std::string name_of(const Finding& finding) {
    auto of = finding.problem.policy.empty() ? finding.problem.subject : finding.problem.policy;
    std::ranges::replace(of, ' ', '_');
    return finding.id + (of.empty() ? "" : "/" + of.substr(of.rfind('/') + 1));
}

/// The order on the screen: what should be mended, what mends itself, what an administrator knows, and notes.
int rank(const Finding& finding) {
    if (finding.severity == Severity::note) return 3;
    return finding.until ? 2 : finding.severity == Severity::settling ? 1 : 0;
}

} // namespace

void Tally::add(std::string_view state, bool is_queue, const std::string& policy, Group one) {
    const auto* row =
        std::ranges::find(told, state, [](const auto& known) { return std::string_view(known.first); });
    if (row == told.end() || one.why.starts_with("not permitted")) return;
    auto kind = row->second;
    if (kind != Ailment::refused) one.why.clear();
    if (one.why.find("Read-only file system") != std::string::npos) kind = Ailment::read_only;
    const auto [group, is_first] = groups_.try_emplace({kind, is_queue, policy}, std::move(one));
    if (!is_first) ++group->second.count;
}

void Tally::add(const ThreadStatus& thread, const std::string& policy) {
    add(state_of(thread), false, policy,
        {fmt::format("{} ({})", thread.tid, thread.comm), thread.comm,
         thread.outcome ? std::string(enforcer::to_string(*thread.outcome)) : ""});
}

void Tally::add(const QueueStatus& queue) {
    add(state_of(queue), true, queue.policy, {name_of(queue), "", queue.note});
}

void Tally::judge(Overview& overview, const std::optional<accounting::MeasurementReport>& measured) const {
    std::vector<std::string> innocent;
    for (const auto& writer : overview.other_writers)
        if (writer.keeps_off) innocent.push_back(writer.name);
    const auto acquitted = innocent.empty() ? "" : fmt::format(" (not {})", fmt::join(innocent, ", "));
    std::vector<Finding> list;
    for (const auto& [key, group] : groups_) {
        const auto& [kind, is_queue, policy] = key;
        const std::string noun = is_queue ? "queue" : "thread";
        const char* file = is_queue && group.first.starts_with("IRQ ") ? "writing smp_affinity " : "";
        const auto why = group.why.empty() ? "" : fmt::format(" ({}{})", file, group.why);
        const bool is_many = group.count > 1;
        list.push_back(finding(kind, policy, is_many ? counted(group.count, noun) : noun + " " + group.first,
                               {policy, why, acquitted, group.first}, is_many));
        list.back().comm = group.comm;
    }
    if (measured && measured->trend.trend == measure::Trend::down) {
        const auto& path = measured->last.path;
        list.push_back(finding(Ailment::throughput, "", "throughput",
                               {path.empty() ? "" : fmt::format(", over {},", path),
                                fmt::format("{:.0f}", -100 * measured->trend.change)}));
    }
    auto& all = overview.problems;
    const auto others = std::ranges::stable_partition(all, [](const auto& one) { return one.id == "file"; });
    all.insert(others.begin(), std::move_iterator(list.begin()), std::move_iterator(list.end()));
    for (auto& one : all) {
        one.name = name_of(one);
        if (const auto known = overview.acknowledged.find(one.name); known != overview.acknowledged.end())
            one.until = known->second;
    }
    std::ranges::stable_sort(all, {}, rank);
    while (!all.empty() && all.back().severity == Severity::note) {
        overview.notes.insert(overview.notes.begin(), std::move(all.back()));
        all.pop_back();
    }
    const bool is_new = overview.last_pass == Overview::Time{};
    overview.health = is_new ? Severity::settling : Severity::note;
    for (const auto& one : all)
        if (!one.until) overview.health = std::max(overview.health, one.severity);
}

} // namespace affinityd::status
