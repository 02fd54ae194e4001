// SPDX-License-Identifier: Apache-2.0
// The manager's answers: status, plan, explain.
#include "app/json.hpp"
#include "app/lineage.hpp"
#include "app/manager.hpp"
#include "app/report_json.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "inventory/head.hpp"
#include "inventory/scan.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include <unistd.h>

namespace affinityd::app {

namespace {

using nlohmann::json;

constexpr std::array model_names{"none", "irq", "process", "full"};

std::string iso_time(std::chrono::system_clock::time_point when) {
    const auto seconds = std::chrono::system_clock::to_time_t(when);
    tm parts{};
    ::gmtime_r(&seconds, &parts);
    char text[32];
    const auto length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return {text, length};
}

struct Count {
    std::size_t processes = 0, threads = 0, in_place = 0;
};

json policy_json(const World& world, std::size_t index, const Count& count, bool released) {
    const auto& policy = world.policies().policies[index];
    const auto& compiled = world.placements().policies[index];
    json queues = json::array();
    for (const auto& nic : compiled.nics)
        queues.push_back(nic.nic);
    return {{"name", policy.name},
            {"description", policy.description},
            {"file", policy.at.file},
            {"affinity", model_names[static_cast<std::size_t>(policy.model)]},
            {"cpus", compiled.allowed.to_list()},
            {"active", compiled.active && !released},
            {"released", released},
            {"nics", std::move(queues)},
            {"processes", count.processes},
            {"threads", count.threads},
            {"threads_in_place", count.in_place}};
}

json verdict_json(const World& world, const planner::Verdict& verdict) {
    json value{{"policy", world.policies().policies[verdict.policy].name}, {"matched", verdict.matched}};
    if (verdict.matched) return value;
    value["field"] = verdict.field;
    value["wanted"] = verdict.wanted;
    value["found"] = verdict.found;
    return value;
}

} // namespace

std::string Manager::status() const {
    std::vector<Count> counts(world_->policies().policies.size());
    json processes = json::array();
    for (const auto& [pid, process] : tasks_.processes()) {
        auto& count = counts[process.policy];
        ++count.processes;
        json threads = json::array();
        for (const auto& [tid, thread] : process.threads) {
            ++count.threads;
            if (thread.state == planner::ThreadPlan::State::in_place) ++count.in_place;
            threads.push_back(to_json(thread));
        }
        processes.push_back({{"pid", pid},
                             {"comm", process.comm},
                             {"policy", world_->policies().policies[process.policy].name},
                             {"nics", process.nics},
                             {"threads", std::move(threads)}});
        if (!process.memory_state.empty())
            processes.back()["memory"] = {{"nodes", process.memory_nodes}, {"state", process.memory_state}};
    }
    std::sort(processes.begin(), processes.end(),
              [](const json& a, const json& b) { return a["pid"] < b["pid"]; });
    json value{{"version", AFFINITYD_VERSION},
               {"pid", ::getpid()},
               {"dry_run", !parts_.enforcer.acts()},
               {"loaded_at", iso_time(loaded_at_)},
               {"policy_folders", parts_.settings.policy_folders},
               {"online", world_->machine().topology.online.to_list()},
               {"journal", parts_.journal.size()},
               {"reconciles", reconciles_},
               {"reconciling", reconcile_ != nullptr},
               {"fast_path", fast_},
               {"events_lost", lost_},
               {"processes", std::move(processes)}};
    value["policies"] = json::array();
    for (std::size_t i = 0; i < counts.size(); ++i)
        value["policies"].push_back(
            policy_json(*world_, i, counts[i],
                        released_.contains("*") || released_.contains(world_->policies().policies[i].name)));
    value["queues"] = json::array();
    for (const auto& target : world_->placements().queues) {
        value["queues"].push_back(to_json(target, parts_.journal));
        if (auto note = queue_care_.note(target.subject); !note.empty())
            value["queues"].back()["note"] = std::move(note);
    }
    value["problems"] = json::array();
    for (const auto& problem : world_->placements().problems)
        value["problems"].push_back(to_json(problem));
    for (const auto& problem : unit_problems_)
        value["problems"].push_back(to_json(problem));
    value["units"] = json::array();
    for (const auto& [name, unit] : units_)
        value["units"].push_back({{"unit", name},
                                  {"policy", world_->policies().policies[unit.policy].name},
                                  {"wanted", world_->placements().policies[unit.policy].allowed.to_list()},
                                  {"state", unit.state}});
    value["claimed_by_others"] = json::array();
    for (const auto& peer : peers_.list()) {
        json subjects = json::array();
        for (const auto& subject : peer.shared)
            subjects.push_back(planner::to_string(subject));
        value["claimed_by_others"].push_back(
            {{"runtime_dir", peer.runtime_dir}, {"subjects", std::move(subjects)}});
    }
    value["other_writers"] = json::array();
    for (const auto& writer : other_writers_.list())
        value["other_writers"].push_back(
            {{"name", writer.name}, {"where", writer.where}, {"note", writer.note}});
    value["refused"] = executor_.refusals();
    value["outcomes"] = json::object();
    for (std::size_t i = 0; i <= static_cast<std::size_t>(enforcer::Outcome::failed); ++i)
        if (executor_.counts()[i] > 0)
            value["outcomes"][std::string(to_string(static_cast<enforcer::Outcome>(i)))] =
                executor_.counts()[i];
    value["costs"] = to_json(costs_.report());
    value["measurement"] = to_json(measurements_.report());
    return dump(value);
}

std::string Manager::plan() {
    json actions = json::array();
    planner::Assignments seats = assignments_; // a copy: looking must not seat anybody
    const ProcessLineage lineage(parts_.root, tasks_, world_->policies());
    for (const int pid : inventory::list_pids(parts_.root).value_or(std::vector<int>{})) {
        const auto head = inventory::read_head(parts_.root, pid, &sources_);
        if (!head) continue;
        auto policy = world_->matcher().match(*head->facts, lineage);
        if (policy && is_released(pid, *policy)) policy.reset();
        if (!policy && !must_look_at(*head, head->facts->parent())) continue;
        const auto* known = tasks_.find(pid);
        const auto threads = inventory::read_threads(parts_.root, pid);
        const CpuSet* cpuset = policy ? sources_.cpuset(pid) : nullptr;
        for (std::size_t i = 0; i < threads.size(); ++i) {
            const planner::Unit unit{head->id, &threads[i], static_cast<unsigned>(i),
                                     known == nullptr ? nullptr : &known->nics, cpuset};
            const auto plan = planner::plan_thread(world_->placements(), seats, policy, unit, parts_.journal);
            if (plan.action) actions.push_back(to_json(*plan.action));
        }
    }
    for (const auto& action : planner::plan_queues(world_->placements(), parts_.journal))
        if (!queue_care_.rests(action)) actions.push_back(to_json(action));
    json problems = json::array();
    for (const auto& problem : world_->placements().problems)
        problems.push_back(to_json(problem));
    return dump({{"actions", std::move(actions)}, {"problems", std::move(problems)}});
}

Result<std::string> Manager::explain_task(int pid) {
    const auto head = inventory::read_head(parts_.root, pid, &sources_);
    if (!head) return fail("there is no such process", std::to_string(pid));
    json considered = json::array();
    std::optional<std::size_t> policy;
    for (const auto& verdict :
         world_->matcher().explain(*head->facts, ProcessLineage(parts_.root, tasks_, world_->policies()))) {
        considered.push_back(verdict_json(*world_, verdict));
        if (verdict.matched) policy = verdict.policy;
    }
    const auto* known = tasks_.find(pid);
    planner::Assignments seats = assignments_;
    json threads = json::array();
    const auto all = inventory::read_threads(parts_.root, pid);
    const CpuSet* cpuset = policy ? sources_.cpuset(pid) : nullptr;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const planner::Unit unit{head->id, &all[i], static_cast<unsigned>(i),
                                 known == nullptr ? nullptr : &known->nics, cpuset};
        const auto plan = planner::plan_thread(world_->placements(), seats, policy, unit, parts_.journal);
        json thread{{"tid", all[i].id.tid}, {"comm", all[i].comm}, {"present", all[i].allowed.to_list()}};
        if (plan.target) {
            thread["wanted"] = plan.target->mask.to_list();
            thread["reason"] = planner::reason_of(world_->placements(), *plan.target);
        }
        if (plan.state == planner::ThreadPlan::State::outside)
            thread["reason"] = "its cpuset (" + cpuset->to_list() + ") has none of the policy's CPUs";
        if (plan.action) thread["would_change"] = plan.action->reason;
        if (const auto* held = parts_.journal.find(planner::TaskMask{all[i].id, pid, {}}))
            thread["original"] = held->original.to_list();
        if (all[i].is_immovable()) thread["reason"] = "a kernel thread that the kernel does not let move";
        threads.push_back(std::move(thread));
    }
    json means = nullptr;
    if (known != nullptr && !known->unit.empty()) {
        const auto unit = units_.find(known->unit);
        means = {{"cpuset_of", known->unit},
                 {"state", unit == units_.end() ? "not yet" : unit->second.state}};
    }
    return dump({{"pid", pid},
                 {"comm", head->comm},
                 {"means", std::move(means)},
                 {"released", policy && is_released(pid, *policy)},
                 {"policy", policy ? json(world_->policies().policies[*policy].name) : json(nullptr)},
                 {"considered", std::move(considered)},
                 {"nics", known == nullptr ? std::vector<std::string>{} : known->nics},
                 {"threads", std::move(threads)}});
}

Result<std::string> Manager::explain(const std::string& subject) {
    json queues = json::array();
    const auto number = parse_number<unsigned>(subject);
    for (const auto& target : world_->placements().queues) {
        const auto* irq = std::get_if<planner::IrqMask>(&target.subject);
        if (target.nic == subject ||
            (irq != nullptr && (subject == "irq:" + std::to_string(irq->irq) || subject == irq->label)))
            queues.push_back(to_json(target, parts_.journal));
    }
    if (!queues.empty() || world_->machine().nic(subject) != nullptr)
        return dump({{"subject", subject}, {"queues", std::move(queues)}});
    if (!number) return fail("neither a PID, nor an interface, nor irq:NUMBER", subject);
    const int tid = static_cast<int>(*number);
    const auto pid = inventory::read_process_id(parts_.root, tid);
    if (!pid) return fail("there is no such process or thread", subject);
    return explain_task(*pid);
}

} // namespace affinityd::app
