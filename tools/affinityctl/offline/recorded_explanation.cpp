// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/recorded_explanation.hpp"

#include "affinityctl/offline/still_machine.hpp"
#include "base/text.hpp"
#include "status/json.hpp"

#include <algorithm>
#include <utility>

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

} // namespace

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
    if (!tid) return affinityd::fail("neither a PID, nor an interface, nor irq:NUMBER", subject);
    // Slots are given in turn, so that whoever comes first has been planned first.
    for (const auto& process : still.processes())
        still.plan(process, [](const auto&, const auto&) {});
    const auto* process = still.process_of(*tid);
    if (process == nullptr) return affinityd::fail("the recording has no such process or thread", subject);
    return explain_process(still, *process);
}

} // namespace affinityctl
