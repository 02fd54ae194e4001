// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/status/findings.hpp"

#include "affinityctl/daemon/members.hpp"
#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/queue_words.hpp"
#include "affinityctl/views/status/tables.hpp"
#include "affinityctl/views/table.hpp"
#include "base/escape.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string_view>

#include <fmt/format.h>

namespace affinityctl {

using nlohmann::json;

namespace {

/// What is said of threads or queues in a state; in the order of gravity. {}: who is not to blame.
struct StateText {
    std::string_view state;
    const char* one;
    const char* many;
    const char* remedy = nullptr; ///< nullptr: the list of them tells more
    bool mends_itself = false;
};
constexpr const char* next_pass = "no action is needed; at once: affinityctl apply";

constexpr std::array states{
    StateText{"refused", "could not be set", "could not be set"},
    StateText{"fought over", "is fought over: another program{} keeps changing it",
              "are fought over: another program{} keeps changing them",
              "grep -rlE 'smp_affinity|taskset' /etc /usr/local; stop what it names; then affinityctl apply"},
    StateText{"outside its cpuset", "may not leave its cpuset for the CPUs of the policy",
              "may not leave their cpuset for the CPUs of the policy"},
    StateText{"drifted", "was moved by somebody else; the next pass puts it right",
              "were moved by somebody else; the next pass puts them right", next_pass, true},
    StateText{"not in place", "is not in place now; the next pass puts it right",
              "are not in place now; the next pass puts them right", next_pass, true},
    StateText{"on another CPU", "is on another CPU, as its own has no interrupt vector left",
              "are on other CPUs, as theirs have no interrupt vector left"},
};

/// Those of one policy in one state.
struct Group {
    std::size_t count = 0;
    std::string first; ///< its name
    std::string why;   ///< of the first
};
using Groups = std::map<std::string, Group, std::less<>>; // by policy

std::string remedy_for(const StateText& state, const std::string& policy, const std::string& why) {
    if (why.find("Read-only file system") != std::string::npos)
        return "systemctl cat affinityd; remove ReadOnlyPaths= or ProtectKernelTunables= from its drop-in; "
               "then systemctl daemon-reload; systemctl restart affinityd (in a container: start it with "
               "--privileged)";
    return state.remedy != nullptr ? state.remedy
                                   : fmt::format("affinityctl status {} --failed", printable(policy));
}

/// Those that look guilty, but leave alone what is under policy.
std::string acquitted(const json& status) {
    std::vector<std::string> names;
    for (const auto& writer : list(status, "other_writers"))
        if (writer.value("keeps_off", false)) names.push_back(printable(text(writer, "name")));
    return names.empty() ? "" : fmt::format(" (not {})", fmt::join(names, ", "));
}

void add_findings(const json& status, const Groups& groups, const StateText& state, const char* noun,
                  std::vector<Finding>& into) {
    if (groups.empty()) return;
    const auto innocent = acquitted(status);
    const auto one = fmt::format(fmt::runtime(state.one), innocent);
    const auto many = fmt::format(fmt::runtime(state.many), innocent);
    for (const auto& [policy, group] : groups) {
        const auto who = group.count == 1 ? fmt::format("{} {} {}", noun, printable(group.first), one)
                                          : fmt::format("{} {}, first {}", counted(group.count, noun), many,
                                                        printable(group.first));
        into.push_back({fmt::format("policy {}: {}{}", printable(policy), who, printable(group.why)),
                        remedy_for(state, policy, group.why), nullptr, state.mends_itself});
    }
}

void note(Groups& groups, const std::string& policy, std::string name, std::string why) {
    auto& group = groups[policy];
    if (group.count++ == 0) group = {1, std::move(name), std::move(why)};
}

/// The errno of a refusal, and of which file; of other states all is said.
std::string why_of(const json& refused, const char* key, const char* file, const StateText& state) {
    const auto why = text(refused, key);
    return why.empty() || state.state != "refused" ? "" : fmt::format(" ({}{})", file, why);
}

void add_threads(const json& status, const StateText& state, std::vector<Finding>& into) {
    Groups groups;
    for (const auto& process : list(status, "processes"))
        for (const auto& thread : list(process, "threads"))
            if (text(thread, "state") == state.state)
                note(groups, text(process, "policy"),
                     fmt::format("{} ({})", text_of(thread, "tid"), text(thread, "comm")),
                     why_of(thread, "outcome", "", state));
    add_findings(status, groups, state, "thread", into);
}

void add_queues(const json& status, const StateText& state, std::vector<Finding>& into) {
    Groups groups;
    for (const auto& queue : list(status, "queues"))
        if (text(queue, "state") == state.state)
            note(groups, text(queue, "policy"),
                 fmt::format("{} of {}", queue_name(queue), text_of(queue, "nic")),
                 why_of(queue, "note", text(queue, "kind") == "irq" ? "writing smp_affinity " : "", state));
    add_findings(status, groups, state, "queue", into);
}

/// A file that does not count, and what does in its place.
std::string fault_text(const json& fault) {
    const auto in_force = printable(text(fault, "in_force"));
    const auto note = affinityd::escaped_lines(text(fault, "note"));
    return fmt::format("{}:{}:{}: {}; {}{}", printable(text(fault, "file")), count(fault, "line"),
                       count(fault, "column"), affinityd::escaped_lines(text(fault, "message")),
                       in_force.empty() ? "nothing is in force in its place"
                                        : "its last good version stays in force (" + in_force + ")",
                       note.empty() ? "" : " (" + note + ")");
}

void add_load(const json& status, std::vector<Finding>& into) {
    const auto load = member(status, "load");
    if (!text(load, "refused").empty())
        into.push_back({"the last reload was refused, and what was in force before stays: " +
                            affinityd::escaped_lines(text(load, "refused")),
                        "affinityctl check"});
    for (const auto& fault : list(load, "faults"))
        into.push_back({fault_text(fault), fmt::format("correct and save {}: it is read at once",
                                                       printable(text(fault, "file")))});
}

void add_problems(const json& status, std::vector<Finding>& into) {
    for (const auto& problem : other_problems(status)) {
        const auto policy = text(problem, "policy");
        into.push_back({fmt::format("{}{}: {}", policy.empty() ? "" : "policy " + printable(policy) + ", ",
                                    printable(text(problem, "subject")),
                                    affinityd::escaped_lines(text(problem, "message"))),
                        printable(text(problem, "hint")), member(problem, "since")});
    }
}

void add_others(const json& status, std::vector<Finding>& into) {
    const auto report = member(status, "measurement");
    const auto trend = member(report, "trend");
    if (text(trend, "direction") != "down") return;
    const auto path = text(member(report, "last"), "path");
    into.push_back(
        {fmt::format("throughput fell: the last measurement{} is {:.0f} % below the median of those "
                     "before",
                     path.empty() ? "" : ", over " + printable(path) + ",",
                     -100 * trend.value("change", 0.0)),
         "affinityctl measure (a usual result clears this)"});
}

} // namespace

bool is_out_of_place(const json& thread_or_queue) {
    constexpr std::array settled{"in place", "left alone", "unwanted", "yielded",
                                 "kept off", "released",   "not read", "decided by another policy",
                                 "waits"};
    return std::ranges::find(settled, text(thread_or_queue, "state")) == settled.end();
}

std::vector<Finding> immovables_in(const json& status) {
    constexpr StateText immovable{"immovable", "cannot be moved, and stays where the kernel has it",
                                  "cannot be moved, and stay where the kernel has them"};
    std::vector<Finding> found;
    add_threads(status, immovable, found);
    add_queues(status, immovable, found);
    return found;
}

bool needs_attention(const std::vector<Finding>& findings) {
    return !std::ranges::all_of(findings, &Finding::mends_itself);
}

std::vector<Finding> findings_in(const json& status) {
    std::vector<Finding> found;
    add_load(status, found);
    for (const auto& state : states) {
        add_threads(status, state, found);
        add_queues(status, state, found);
    }
    add_others(status, found);
    add_problems(status, found);
    std::ranges::stable_partition(found, std::logical_not{}, &Finding::mends_itself);
    return found;
}

} // namespace affinityctl
