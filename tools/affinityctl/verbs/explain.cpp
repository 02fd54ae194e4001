// SPDX-License-Identifier: Apache-2.0
// affinityctl explain: why something is where it is, as the daemon has it or as it would be on a recorded
// machine.
#include "affinityctl/offline/still_machine.hpp"
#include "affinityctl/offline/subjects.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/latency_option.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/explanation.hpp"
#include "affinityctl/views/json_text.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "status/json.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

namespace {

using nlohmann::json;
namespace planner = affinityd::planner;
namespace policy = affinityd::policy;
namespace status = affinityd::status;
using affinityd::inventory::Thread;

/// Where the file says what becomes of a thread: its thread rule, or the policy's `match`.
std::optional<policy::Position> decided_by(const policy::Policy& policy, const Thread& thread, unsigned index,
                                           const planner::ThreadPlan& plan) {
    using planner::NoPlace;
    if (thread.is_immovable()) return std::nullopt;
    // A lane or a group is the policy's even for a thread that a rule names.
    if (plan.target) {
        const auto rule = plan.target->distribution.rule;
        return rule == 0 ? policy.match_at : policy.threads[rule - 1].at;
    }
    const auto rule = planner::Matcher::thread_rule(policy, thread.comm, index);
    const bool is_the_rules = plan.untouched == NoPlace::leave || plan.untouched == NoPlace::outside;
    return rule && is_the_rules ? policy.threads[*rule].at : policy.match_at;
}

json explain_process(StillMachine& still, const SeenProcess& process) {
    status::ProcessExplanation value{.pid = process.scan.id().tid,
                                     .comm = process.scan.comm(),
                                     .policy = {},
                                     .considered = {},
                                     .nics = {},
                                     .nics_note = {},
                                     .fenced_unit = {},
                                     .fence_state = {}};
    const auto& policies = still.policies().policies;
    for (auto& verdict : still.consider(process)) {
        const auto& considered = policies[verdict.policy];
        if (!verdict.matched && !still.is_recorded(process, verdict.field)) verdict.found = "not recorded";
        value.considered.push_back({considered.name, considered.match_at, std::move(verdict)});
    }
    if (process.policy) {
        value.policy = policies[*process.policy].name;
        value.nics = still.nics(*process.policy);
        if (needs_sockets(policies[*process.policy]))
            value.nics_note = "nics: auto: without a daemon it is not known which interfaces serve it";
    }
    const auto* cpuset = still.cpuset(process);
    json threads = json::array();
    unsigned index = 0;
    still.plan(process, [&](const Thread& thread, const planner::ThreadPlan& plan) {
        status::ThreadExplanation one{.thread = thread,
                                      .plan = plan,
                                      .reason = {},
                                      .decided_by = {},
                                      .original = {},
                                      .cpuset = cpuset == nullptr ? affinityd::CpuSet() : *cpuset};
        if (process.policy) {
            one.rule = planner::Matcher::thread_rule(policies[*process.policy], thread.comm, index);
            one.decided_by = decided_by(policies[*process.policy], thread, index, plan);
        }
        if (plan.target) one.reason = planner::reason_of(still.placements(), *plan.target);
        threads.push_back(status::to_json(one, value));
        ++index;
    });
    json answer = status::to_json(value);
    answer["threads"] = std::move(threads);
    return answer;
}

json explain_queue(const StillMachine& still, const planner::QueueTarget& target) {
    using State = status::QueueStatus::State;
    const auto present = still.present(target.subject);
    return status::to_json(status::QueueStatus{.subject = target.subject,
                                               .nic = target.nic,
                                               .policy = target.policy,
                                               .wanted = target.wanted,
                                               .present = present.value_or(affinityd::machine::Setting{}),
                                               .reason = target.reason,
                                               .original = {},
                                               .state = target.rank > 0             ? State::decided_by_other
                                                        : !present                  ? State::not_read
                                                        : *present == target.wanted ? State::in_place
                                                                                    : State::not_in_place,
                                               .note = target.rank > 0
                                                           ? "another interface on the same line decides"
                                                       : !present ? "its setting is not recorded"
                                                                  : "",
                                               .shared_with = target.shared_with});
}

/// Policies, and what is under them, as GetStatus has them.
json recorded_state(const StillMachine& still) {
    const auto& policies = still.policies().policies;
    json state{{"policies", json::array()}, {"processes", json::array()}, {"queues", json::array()}};
    for (const auto& policy : policies)
        state["policies"].push_back({{"name", policy.name}, {"file", policy.at.file}});
    for (const auto& process : still.processes())
        if (process.policy)
            state["processes"].push_back(
                {{"pid", process.scan.id().tid}, {"policy", policies[*process.policy].name}});
    for (const auto& target : still.placements().queues)
        state["queues"].push_back(explain_queue(still, target));
    return state;
}

/// Why a thread, an interface or an interrupt of a still machine would be where it would be, as Explain
/// answers it. `subject`: a PID, a TID, the name of an interface, irq:NUMBER or the label of an interrupt. An
/// Error if the machine has nothing of that name.
affinityd::Result<json> explain_recorded(StillMachine& still, const std::string& subject) {
    json queues = json::array();
    const auto* nic = still.machine().nic(subject);
    for (const auto& target : still.placements().queues) {
        const auto* irq = std::get_if<planner::IrqMask>(&target.subject);
        const bool is_irq =
            irq != nullptr && (subject == "irq:" + std::to_string(irq->irq) || subject == irq->label);
        if ((nic != nullptr && target.nic == nic->name) || is_irq)
            queues.push_back(explain_queue(still, target));
    }
    const auto line =
        subject.starts_with("irq:") ? affinityd::parse_number<unsigned>(subject.substr(4)) : std::nullopt;
    const bool is_there = nic != nullptr || (line && still.machine().irqs.find(*line) != nullptr);
    json answer{{"subject", subject}, {"queues", std::move(queues)}};
    if (const auto missing = still.missing_parts(); answer["queues"].empty() && !missing.empty())
        answer["note"] = fmt::format("not recorded: {}", fmt::join(missing, ", "));
    if (!answer["queues"].empty() || is_there) return answer;
    if (subject.starts_with("irq:"))
        return affinityd::fail("there is no interrupt of this number in the recording", subject);
    const auto tid = affinityd::parse_number<int>(subject);
    if (!tid) return affinityd::fail("neither a PID, nor an interface, irq:NUMBER, unit or policy", subject);
    // Slots are given in turn, so that whoever comes first has been planned first.
    for (const auto& process : still.processes())
        still.plan(process, [](const auto&, const auto&) {});
    const auto* process = still.process_of(*tid);
    if (process == nullptr) return affinityd::fail("the recording has no such process or thread", subject);
    return explain_process(still, *process);
}

using nlohmann::json;

struct ExplainOptions {
    std::vector<std::string> subjects;
    std::vector<std::string> policies;
    std::string latency; ///< a file; "": none
};

/// Where explanations come from.
struct Source {
    /// Of a PID, a TID, an interface or an interrupt.
    std::function<std::expected<json, CallError>(const std::string&)> explain;
    /// Processes and queues under a policy: a status, or the plan of a recorded machine.
    std::function<std::expected<json, CallError>()> state;
    std::string root;
};

/// The subjects that a policy stands for are its processes and its queues; no value: there is no such policy.
std::expected<std::optional<json>, CallError> explain_policy(const Source& source, const std::string& name) {
    const auto state = source.state();
    if (!state) return std::unexpected(state.error());
    const json* found = nullptr;
    for (const auto& policy : state->at("policies"))
        if (policy.value("name", "") == name) found = &policy;
    if (found == nullptr) return std::nullopt;
    json parts = json::array();
    for (const auto& process : state->at("processes")) {
        if (process.value("policy", "") != name) continue;
        // One that has ended meanwhile is left out.
        if (auto part = source.explain(std::to_string(process.value("pid", 0))))
            parts.push_back(std::move(*part));
    }
    json queues = json::array();
    for (const auto& queue : state->at("queues"))
        if (queue.value("policy", "") == name) queues.push_back(queue);
    if (!queues.empty()) parts.push_back({{"subject", name}, {"queues", std::move(queues)}});
    return json{{"subject", name}, {"of_policy", *found}, {"explanations", std::move(parts)}};
}

std::expected<std::optional<json>, CallError> explain_unit(const Source& source, const std::string& name) {
    if (name.find('.') == std::string::npos) return std::nullopt;
    const auto root = affinityd::host::Root::open(source.root);
    if (!root) return std::unexpected(CallError{exit_failure, root.error().to_string()});
    const auto pids = processes_of_unit(*root, name);
    if (!pids) return std::unexpected(CallError{exit_failure, pids.error().to_string()});
    if (pids->empty()) return std::nullopt;
    json parts = json::array();
    for (const int pid : *pids)
        if (auto part = source.explain(std::to_string(pid))) parts.push_back(std::move(*part));
    return json{{"subject", name}, {"explanations", std::move(parts)}};
}

std::expected<json, CallError> explain_one(const Source& source, const std::string& subject) {
    auto answer = source.explain(subject);
    if (answer || answer.error().code != exit_failure) return answer;
    for (const auto& way : {explain_policy, explain_unit}) {
        auto found = way(source, subject);
        if (!found) return std::unexpected(found.error());
        if (*found) return std::move(**found);
    }
    return answer;
}

/// One answer is printed as it is, several as a list.
int explain_all(const Source& source, const ExplainOptions& options, const Globals& globals) {
    int status = exit_ok;
    json answers = json::array();
    std::string text;
    for (const auto& subject : options.subjects) {
        auto answer = explain_one(source, subject);
        if (!answer) {
            status = complain(answer.error());
            if (status != exit_failure) return status; // the same for all that follow
            continue;
        }
        text += (text.empty() ? "" : "\n") + explanation_text(*answer, globals.color);
        answers.push_back(std::move(*answer));
    }
    if (!globals.json)
        fmt::print("{}", text);
    else if (options.subjects.size() > 1)
        fmt::print("{}\n", dump(answers));
    else if (!answers.empty())
        fmt::print("{}\n", dump(answers[0]));
    return status;
}

int explain_by_daemon(const ExplainOptions& options, const Globals& globals) {
    return explain_all(
        {[&](const std::string& subject) { return ask_daemon_object(globals, "Explain", {subject}); },
         [&] { return ask_daemon_object(globals, "GetStatus"); }, globals.root},
        options, globals);
}

int explain_by_files(const ExplainOptions& options, const Globals& globals) {
    const auto policies = read_policy_set(options.policies, globals);
    if (!policies) return policies.error();
    auto latencies = latencies_for(globals, options.latency);
    if (!latencies) return complain(latencies.error());
    const auto still = StillMachine::read(*policies, globals.root, std::move(*latencies));
    if (!still) return complain(still.error());
    const auto explain = [&](const std::string& subject) -> std::expected<json, CallError> {
        auto answer = explain_recorded(**still, subject);
        if (!answer) return std::unexpected(CallError{exit_failure, answer.error().to_string()});
        return std::move(*answer);
    };
    return explain_all(
        {explain, [&]() -> std::expected<json, CallError> { return recorded_state(**still); }, globals.root},
        options, globals);
}

} // namespace

void add_explain(CLI::App& app, Globals& globals, int& status) {
    auto* verb =
        app.add_subcommand("explain", "why something is where it is; with --root, on a recorded machine");
    const auto options = std::make_shared<ExplainOptions>();
    verb->add_option("SUBJECT", options->subjects,
                     "PID, TID, interface, irq:NUMBER, label of an interrupt, policy or unit; several are "
                     "explained in turn")
        ->required();
    verb->add_option("--policies", options->policies,
                     "with --root: policy file or folder instead of the usual folders; may be given again")
        ->type_name("PATH")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    add_latency_option(*verb, options->latency);
    verb->callback([&globals, &status, options] {
        if (globals.is_recorded())
            status = explain_by_files(*options, globals);
        else if (!options->policies.empty() || !options->latency.empty())
            status = complain(CallError{exit_usage,
                                        "--policies and --latency are for recorded machines (--root): the "
                                        "daemon explains with what it has itself"});
        else
            status = explain_by_daemon(*options, globals);
    });
}

} // namespace affinityctl
