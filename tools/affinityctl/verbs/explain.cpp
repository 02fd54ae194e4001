// SPDX-License-Identifier: Apache-2.0
// affinityctl explain: why something is where it is, as the daemon has it or as it would be on a recorded
// machine.
#include "affinityctl/offline/recorded_explanation.hpp"
#include "affinityctl/offline/still_machine.hpp"
#include "affinityctl/offline/subjects.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/latency_option.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/explanation.hpp"
#include "affinityctl/views/json_text.hpp"
#include "host/root.hpp"

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace affinityctl {

namespace {

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
