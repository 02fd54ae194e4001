// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/still_answers.hpp"

#include "base/text.hpp"
#include "planner/check.hpp"
#include "planner/crowding.hpp"
#include "policy/policy.hpp"
#include "policy/reader.hpp"
#include "status/json.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

namespace {

namespace planner = affinityd::planner;
namespace policy = affinityd::policy;
namespace status = affinityd::status;
using affinityd::counted;
using nlohmann::json;

/// Adds the tasks of a machine to a plan.
void plan_tasks(StillMachine& still, json& plan) {
    planner::NarrowProcesses narrow;
    for (const auto& process : still.processes()) {
        json placed = json::array();
        affinityd::CpuSet has;
        std::size_t threads = 0;
        still.plan(process, [&](const auto& thread, const planner::ThreadPlan& planned) {
            if (planned.action) plan["actions"].push_back(status::to_json(*planned.action));
            has |= planned.target ? planned.target->mask : thread.allowed;
            ++threads;
            if (planned.target)
                placed.push_back({{"tid", thread.id.tid},
                                  {"comm", thread.comm},
                                  {"wanted", planned.target->mask.to_list()}});
        });
        if (!process.policy) continue;
        plan["processes"].push_back({{"pid", process.scan.id().tid},
                                     {"policy", still.policies().policies[*process.policy].name},
                                     {"threads", std::move(placed)}});
        narrow.add(still.placements().policies[*process.policy], process.scan.id(), threads, has,
                   still.cpuset(process));
    }
    for (const auto& problem : narrow.problems())
        plan["problems"].push_back(status::to_json(problem));
}

/// Adds interrupts and steering; returns how many settings are not recorded, by policy.
std::map<std::string, std::size_t> plan_queues(StillMachine& still, json& plan) {
    std::map<std::string, std::size_t> unread;
    for (const auto& target : still.placements().queues) {
        if (target.rank > 0) continue; // another interface on the same line decides
        const auto present = still.present(target.subject);
        if (!present) {
            if (target.off.empty()) ++unread[target.policy];
            continue;
        }
        const auto action = planner::plan_queue(still.planning(), target, *present);
        if (action) plan["actions"].push_back(status::to_json(*action));
        if (!action && !target.off.empty()) continue; // it is on none of the CPUs that it is kept off
        plan["queues"].push_back(status::to_json(target.subject));
        if (!target.off.empty()) plan["queues"].back()["kept_off"] = true;
        plan["queues"].back().update({{"nic", target.nic.empty() ? "machine" : target.nic},
                                      {"policy", target.policy},
                                      {"wanted", (action ? action->to : target.wanted).to_string()}});
    }
    return unread;
}

/// Notes on all that is not known from files alone.
json notes_of(const StillMachine& still, const std::map<std::string, std::size_t>& unread) {
    json notes = json::array();
    const auto add = [&](const std::string& policy, const std::string& message) {
        json note{{"policy", policy}, {"message", message}};
        if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
    };
    const auto are = [](std::size_t number, const char* one, const char* many) {
        return counted(number, one, many) + (number == 1 ? " is" : " are");
    };
    for (const auto& part : still.missing_parts())
        add("", "not recorded, and nothing is planned for them: " + part);
    const auto& policies = still.policies().policies;
    std::map<std::pair<std::string, std::string>, std::size_t> undecided; // by policy and condition
    std::set<std::string> by_sockets;
    for (const auto& process : still.processes()) {
        for (const auto& verdict : still.consider(process))
            if (!verdict.matched && !still.is_recorded(process, verdict.field))
                ++undecided[{policies[verdict.policy].name, verdict.field}];
        if (process.policy && needs_sockets(policies[*process.policy]))
            by_sockets.insert(policies[*process.policy].name);
    }
    for (const auto& [key, number] : undecided)
        add(key.first, fmt::format("{} of {} not recorded: whether it matches is not known", key.second,
                                   are(number, "process", "processes")));
    for (const auto& [policy, number] : unread)
        add(policy, fmt::format("{} not recorded: whether they would change is not known",
                                are(number, "setting of its interrupts and queues",
                                    "settings of its interrupts and queues")));
    for (const auto& policy : by_sockets)
        add(policy, "nics: auto: which interfaces serve its processes is known once they run under it; "
                    "interrupts and lanes are left out here");
    return notes;
}

json explain_process(StillMachine& still, const SeenProcess& process) {
    status::ProcessExplanation value;
    value.pid = process.scan.id().tid;
    value.comm = process.scan.comm();
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
    still.plan(process, [&](const affinityd::inventory::Thread& thread, const planner::ThreadPlan& plan) {
        status::ThreadExplanation one{.thread = thread, .plan = plan};
        if (cpuset != nullptr) one.cpuset = *cpuset;
        if (process.policy) {
            one.rule = planner::Matcher::thread_rule(policies[*process.policy], thread.comm, index);
            one.decided_by = status::decided_by(policies[*process.policy], one);
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
    status::QueueStatus value;
    value.subject = target.subject;
    value.nic = target.nic;
    value.policy = target.policy;
    value.present = present.value_or(affinityd::machine::Setting{});
    value.wanted = planner::wanted_of(target, nullptr, value.present, still.placements().online);
    value.reason = target.reason;
    value.shared_with = target.shared_with;
    value.state = present == value.wanted ? State::in_place : State::not_in_place;
    if (target.rank > 0) {
        value.state = State::decided_by_other;
        value.note = "another interface on the same line decides";
    } else if (!present) {
        value.state = State::not_read;
        value.note = "its setting is not recorded";
    }
    return status::to_json(value);
}

} // namespace

json plan_of(StillMachine& still) {
    const auto& policies = still.policies();
    json plan{{"balance", nullptr}};
    for (const char* key : {"actions", "problems", "policies", "processes", "queues"})
        plan[key] = json::array();
    std::set<std::string> told; // of these policies
    for (const auto& problem : still.placements().problems) {
        told.insert(problem.policy);
        plan["problems"].push_back(status::to_json(problem));
    }
    for (const auto& found : planner::check_on_machine(policies, still.machine(), {}))
        if (const std::string name(policy::policy_name(found.at.file));
            found.severity == policy::Severity::error && !told.contains(name))
            plan["problems"].push_back(status::to_json(planner::Problem{
                name, fmt::format("line {}", found.at.line), found.message, "affinityctl check"}));
    for (const auto& resolved : still.placements().policies)
        plan["policies"].push_back({{"name", resolved.policy->name},
                                    {"affinity", to_string(resolved.policy->model)},
                                    {"cpus", resolved.allowed.to_list()}});
    plan_tasks(still, plan);
    plan["notes"] = notes_of(still, plan_queues(still, plan));
    if (const auto crowdings = planner::crowdings(still.placements(), still.assignments());
        !crowdings.empty())
        plan["balance"] = status::to_json(crowdings.front());
    return plan;
}

json state_of(const StillMachine& still) {
    const auto& policies = still.policies().policies;
    json state{{"policies", json::array()}, {"processes", json::array()}, {"queues", json::array()}};
    for (const auto& policy : policies)
        state["policies"].push_back({{"name", policy.name}, {"file", policy.at.file}});
    for (const auto& process : still.processes())
        if (process.policy)
            state["processes"].push_back(
                {{"pid", process.scan.id().tid}, {"policy", policies[*process.policy].name}});
    for (const auto& target : still.placements().queues)
        if (target.off.empty()) state["queues"].push_back(explain_queue(still, target));
    return state;
}

affinityd::Result<json> explain(StillMachine& still, const std::string& subject) {
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
    // Slots are given in turn, so all are planned, in their order.
    for (const auto& process : still.processes())
        still.plan(process, [](const auto&, const auto&) {});
    const auto* process = still.process_of(*tid);
    if (process == nullptr) return affinityd::fail("the recording has no such process or thread", subject);
    return explain_process(still, *process);
}

} // namespace affinityctl
