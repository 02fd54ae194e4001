// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/client/findings.hpp"

#include "affinityctl/client/answers.hpp"
#include "affinityctl/present/document.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string_view>

#include <fmt/format.h>

namespace affinityctl {

using affinityd::counted;
using nlohmann::json;

namespace {

using Problems = std::vector<json>;

constexpr const char* attention = "attention";
constexpr const char* settling = "settling";
constexpr const char* acknowledged = "acknowledged";

/// Texts for threads or queues in a state; in the order of gravity. {}: programs that are not to blame.
struct StateText {
    std::string_view state;
    const char* kind;
    const char* one;
    const char* many;
    const char* remedy = nullptr; ///< nullptr: the list of them tells more
    const char* severity = attention;
};
constexpr const char* next_pass = "no action is needed; at once: affinityctl apply";

constexpr std::array states{
    StateText{"refused", "refused", "could not be set", "could not be set"},
    StateText{"fought over", "fight", "is fought over: another program{} keeps changing it",
              "are fought over: another program{} keeps changing them",
              "grep -rlE 'smp_affinity|taskset' /etc /usr/local; stop what it names; then affinityctl apply"},
    StateText{"outside its cpuset", "cpuset", "may not leave its cpuset for the CPUs of the policy",
              "may not leave their cpuset for the CPUs of the policy"},
    StateText{"drifted", "drift", "was moved by another program; the next pass puts it right",
              "were moved by another program; the next pass puts them right", next_pass, settling},
    StateText{"not in place", "drift", "is not in place now; the next pass puts it right",
              "are not in place now; the next pass puts them right", next_pass, settling},
    StateText{"on another CPU", "vector", "is on another CPU, as its own has no interrupt vector left",
              "are on other CPUs, as theirs have no interrupt vector left"},
};

json problem_of(const char* severity, const char* kind, const std::string& policy, const std::string& subject,
                const std::string& message, const std::string& hint) {
    return {{"severity", severity}, {"kind", kind}, {"policy", policy}, {"subject", subject},
            {"message", message},   {"hint", hint}, {"since", nullptr}};
}

std::string remedy_for(const StateText& state, const std::string& policy, const std::string& why) {
    if (why.find("Read-only file system") != std::string::npos)
        return "systemctl cat affinityd; remove ReadOnlyPaths= or ProtectKernelTunables= from its drop-in; "
               "then systemctl daemon-reload; systemctl restart affinityd (in a container: mount the "
               "machine's and say so with --proc)";
    return state.remedy != nullptr ? state.remedy : "affinityctl status " + policy + " --failed";
}

/// Programs that look guilty, but leave alone what is under policy.
std::string acquitted(const json& status) {
    std::vector<std::string> names;
    for (const auto& writer : list(status, "other_writers"))
        if (writer.value("keeps_off", false)) names.push_back(text(writer, "name"));
    return names.empty() ? "" : fmt::format(" (not {})", fmt::join(names, ", "));
}

/// A right that the daemon lacks is one problem, which counts all that it keeps from being set.
bool is_told_as_right(const json& status, const std::string& why) {
    return why.starts_with("not permitted") &&
           std::ranges::any_of(list(status, "problems"),
                               [](const json& problem) { return text(problem, "kind") == "rights"; });
}

/// A problem for each policy with threads or queues in this state.
void add_in_state(const json& status, const StateText& state, Problems& into) {
    struct Group {
        std::size_t count = 0;
        std::string first, why; ///< the name of the first, and the errno of its refusal and of which file
    };
    using Groups = std::map<std::string, Group>; // by policy
    Groups threads, queues;
    const auto note = [&](Groups& groups, const std::string& policy, const json& part, const char* key,
                          const std::string& name, const char* file) {
        const auto why = text(part, key);
        if (text(part, "state") != state.state || is_told_as_right(status, why)) return;
        auto& group = groups[policy];
        if (group.count++ > 0) return;
        group.first = name;
        if (!why.empty() && state.state == "refused") group.why = fmt::format(" ({}{})", file, why);
    };
    for (const auto& process : list(status, "processes"))
        for (const auto& thread : list(process, "threads"))
            note(threads, text(process, "policy"), thread, "outcome",
                 fmt::format("{} ({})", text_of(thread, "tid"), text(thread, "comm")), "");
    for (const auto& queue : list(status, "queues"))
        note(queues, text(queue, "policy"), queue, "note",
             queue_name(queue) + (text(queue, "nic").empty() ? "" : " of " + text(queue, "nic")),
             text(queue, "kind") == "irq" ? "writing smp_affinity " : "");
    const auto add = [&, innocent = acquitted(status)](const Groups& groups, const char* noun) {
        for (const auto& [policy, group] : groups) {
            const bool is_one = group.count == 1;
            const auto subject =
                is_one ? fmt::format("{} {}", noun, group.first) : counted(group.count, noun);
            const auto words = fmt::format(fmt::runtime(is_one ? state.one : state.many), innocent);
            into.push_back(problem_of(state.severity, state.kind, policy, subject,
                                      words + (is_one ? "" : "; the first is " + group.first) + group.why,
                                      remedy_for(state, policy, group.why)));
        }
    };
    add(threads, "thread");
    add(queues, "queue");
}

void add_trend(const json& status, Problems& into) {
    const auto report = member(status, "measurement");
    const auto trend = member(report, "trend");
    if (text(trend, "direction") != "down") return;
    const auto path = text(member(report, "last"), "path");
    into.push_back(
        problem_of(attention, "throughput", "", "throughput",
                   fmt::format("the last measurement{} is {:.0f} % below the median of those before",
                               path.empty() ? "" : ", over " + path + ",", -100 * trend.value("change", 0.0)),
                   "affinityctl measure (a usual result clears this)"));
}

/// Adds problems that the daemon names itself: those of files, or all others.
void add_named(const json& status, bool of_files, Problems& into) {
    for (auto problem : list(status, "problems")) {
        if ((text(problem, "kind") == "file") != of_files) continue;
        problem["severity"] = attention;
        into.push_back(std::move(problem));
    }
}

/// Gives each its name: the kind, and the policy, file or interface. A problem that an administrator has
/// acknowledged gets the end of that.
void add_names(const json& status, Problems& problems) {
    const auto known = member(status, "acknowledged");
    for (auto& problem : problems) {
        auto of = text(problem, "policy");
        if (of.empty()) of = text(problem, "subject");
        auto name = text(problem, "kind");
        std::ranges::replace(of, ' ', '_');
        if (!of.empty()) name += "/" + of.substr(of.rfind('/') + 1);
        if (known.is_object() && known.contains(name)) {
            problem["severity"] = acknowledged;
            problem["until"] = known[name];
        }
        problem["name"] = std::move(name);
    }
}

std::string health_of(const json& status, const Problems& problems) {
    const auto has = [&](const char* severity) {
        return std::ranges::any_of(problems, [&](const json& one) { return one["severity"] == severity; });
    };
    const bool is_new = status.contains("last_pass_at") && status["last_pass_at"].is_null();
    return has(attention) ? attention : is_new || has(settling) ? settling : "ok";
}

} // namespace

bool is_out_of_place(const json& thread_or_queue) {
    constexpr std::array settled{"in place", "left alone", "unwanted", "yielded",
                                 "kept off", "released",   "not read", "decided by another policy"};
    return std::ranges::find(settled, text(thread_or_queue, "state")) == settled.end();
}

std::vector<json> immovables_in(const json& status) {
    constexpr StateText immovable{"immovable", "immovable",
                                  "cannot be moved, and stays where the kernel has it",
                                  "cannot be moved, and stay where the kernel has them"};
    Problems found;
    add_in_state(status, immovable, found);
    return found;
}

std::string would_change(const json& status) {
    const auto number = [](const json& parts) {
        return static_cast<std::size_t>(std::ranges::count_if(
            parts, [](const json& part) { return text(part, "state") == "would change"; }));
    };
    std::size_t threads = 0;
    for (const auto& process : list(status, "processes"))
        threads += number(list(process, "threads"));
    const auto queues = number(list(status, "queues"));
    return fmt::format("{}{}{}", threads == 0 ? "" : counted(threads, "thread"),
                       threads > 0 && queues > 0 ? " and " : "", queues == 0 ? "" : counted(queues, "queue"));
}

std::string sentence_of(const json& problem) {
    const auto policy = text(problem, "policy");
    return fmt::format("{}{}: {}", policy.empty() ? "" : "policy " + policy + ", ", text(problem, "subject"),
                       text(problem, "message"));
}

bool needs_attention(const json& judged) { return text(judged, "health") == attention; }

json judged(json status) {
    Problems found;
    add_named(status, true, found);
    for (const auto& state : states)
        add_in_state(status, state, found);
    add_trend(status, found);
    add_named(status, false, found);
    add_names(status, found);
    for (const char* last : {settling, acknowledged})
        std::ranges::stable_partition(found, [&](const json& one) { return one["severity"] != last; });
    status["health"] = health_of(status, found);
    status["problems"] = std::move(found);
    return status;
}

} // namespace affinityctl
