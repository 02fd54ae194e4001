// SPDX-License-Identifier: Apache-2.0
#include "app/bookkeeping.hpp"

#include "app/log.hpp"
#include "inventory/process_files.hpp"
#include "planner/lanes.hpp"

#include <chrono>
#include <ctime>

namespace affinityd::app {

Bookkeeping::Bookkeeping(const host::Root& root, const Current& current, TaskTable& tasks,
                         const std::string& state_dir, Log& log)
    : root_(root), current_(current), tasks_(tasks), log_(log), usage_(root), costs_(root),
      measurements_(state_dir) {
    costs_.recall(measurements_.kept("passive"));
    log_notices(log_, measurements_.take_notices());
}

void Bookkeeping::see(const KnownProcess& process) {
    const auto text = root_.proc().text(std::to_string(process.id.tid) + "/cgroup");
    auto group = text ? inventory::cgroup_of(*text) : "/";
    if (group != "/") groups_[current_->policy(process.policy).name].insert(std::move(group));
}

void Bookkeeping::begin_usage(const std::function<bool(const KnownProcess&)>& takes_none) {
    const auto& world = *current_.world;
    accounting::NicUsage::Request request{world.machine().nics, {}, {}};
    const planner::Interfaces interfaces(world.machine());
    for (const auto& policy : world.policies().policies) {
        const bool places =
            policy.model == policy::Model::full || policy.model == policy::Model::irq || policy.model_auto;
        accounting::UsagePolicy asked{
            .name = policy.name, .is_auto = policy.nics_auto, .is_sampled = !places};
        if (places && !policy.nics_auto) asked.named = interfaces.of(policy, {});
        request.policies.push_back(std::move(asked));
    }
    for (const auto& [pid, process] : tasks_.processes()) {
        const auto& asked = request.policies[process.policy];
        if (!asked.is_auto && asked.is_sampled) continue;
        request.processes.push_back({process.id, process.policy, takes_none(process)});
    }
    request.now =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch());
    usage_.begin(std::move(request));
}

bool Bookkeeping::use(const accounting::NicUsageResult& result) {
    if (!current_->needs_nic_usage()) {
        // A policy of the same name that comes later has other tasks.
        if (!current_->usage().empty()) current_->update(planner::NicUsage{});
        for (auto& [pid, process] : tasks_.processes()) {
            process.nics.clear();
            process.are_nics_known = process.is_elsewhere = process.reads_nothing = false;
            process.way.clear();
            process.lost.clear();
        }
        return false;
    }
    if (result.fault) { // counts that are incomplete must not distribute lanes anew
        log_.warn("NIC usage is not known: " + result.fault->to_string(), "nic usage");
        return false;
    }
    for (auto& [pid, process] : tasks_.processes())
        if (const auto found = result.processes.find(process.id); found != result.processes.end()) {
            process.nics = found->second.nics;
            process.are_nics_known = found->second.is_known;
            process.is_elsewhere = found->second.is_elsewhere;
            process.way = found->second.way;
            process.lost = found->second.lost;
            process.reads_nothing = !found->second.is_served;
        }
    auto readers = count_readers();
    if (readers == current_->usage()) return false;
    current_->update(std::move(readers));
    return true;
}

planner::NicUsage Bookkeeping::count_readers() const {
    const auto& world = *current_.world;
    const planner::Interfaces interfaces(world.machine());
    planner::NicUsage readers;
    for (const auto& [pid, process] : tasks_.processes()) {
        const auto& policy = world.policy(process.policy);
        const bool has_lanes =
            policy.model == policy::Model::full || policy.model == policy::Model::irq || policy.model_auto;
        if (!has_lanes || process.reads_nothing || process.is_elsewhere) continue;
        planner::ReadingProcess reading{.nics = process.are_nics_known ? &process.nics : nullptr,
                                        .cpuset = process.cpuset.cpus ? &*process.cpuset.cpus : nullptr,
                                        .rules = {}};
        for (unsigned index = 0; const auto& thread : process.threads)
            reading.rules.push_back(planner::rule_of(policy, thread.comm, index++, thread.joined.get()));
        planner::count_readers(policy, interfaces, reading, readers);
    }
    return readers;
}

bool Bookkeeping::step_usage(const OutOfTime& out_of_time, bool& changed) {
    if (!usage_.step(out_of_time)) return false;
    changed = use(usage_.result());
    return true;
}

void Bookkeeping::begin_costs(bool at_end) {
    const auto& world = *current_.world;
    planner::NicUsage sampled;
    for (const auto& [policy, counts] : usage_.result().sampled)
        for (const auto& [nics, processes] : counts)
            sampled[policy][planner::Readers(nics)] = processes;
    const planner::Interfaces interfaces(world.machine());
    std::vector<accounting::CostSubject> subjects;
    if (!at_end)
        for (const auto& policy : world.policies().policies)
            subjects.push_back(
                {policy.name, policy.text_hash, policy.model,
                 interfaces.of(policy, sampled.contains(policy.name) ? sampled : world.usage()),
                 groups_[policy.name]});
    costs_.begin(std::move(subjects), std::time(nullptr));
}

bool Bookkeeping::step_costs(const OutOfTime& out_of_time) {
    if (!costs_.step(out_of_time)) return false;
    for (auto& record : costs_.take_closed())
        measurements_.keep(std::move(record));
    log_notices(log_, measurements_.take_notices());
    return true;
}

void Bookkeeping::measured(const measure::Run& run) {
    measurements_.add(run, current_->policies());
    log_notices(log_, measurements_.take_notices());
}

} // namespace affinityd::app
