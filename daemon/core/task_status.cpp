// SPDX-License-Identifier: Apache-2.0
#include "core/task_status.hpp"

#include "base/owned_text.hpp"
#include "host/scheduler.hpp"
#include "inventory/process_files.hpp"
#include "inventory/process_scan.hpp"
#include "planner/matcher.hpp"
#include "policy/policy.hpp"

#include <cerrno>
#include <map>

#include <fmt/format.h>

namespace affinityd::core {

namespace {

using State = planner::ThreadPlan::State;
using policy::Model;

/// True if the policy wants the thread on certain CPUs. False if it leaves the thread alone, or gave way to
/// another program.
bool gets_a_place(State state) {
    return state == State::in_place || state == State::changes || state == State::put_off ||
           state == State::outside || state == State::immovable;
}

/// The user who may read its names: as of now, since programs give up rights.
uid_t owner_of(const host::Root& root, const TaskId& process) {
    const auto scan = inventory::ProcessScan::open(root, process.tid);
    const bool is_it = scan && *scan && (*scan)->id() == process;
    return is_it ? (*scan)->facts().uid() : OwnedText::no_owner;
}

} // namespace

bool acts_as_process(const World& world, std::size_t policy) {
    const auto& resolved = world.placements().policies[policy];
    return resolved.active && resolved.policy->model == Model::full && resolved.nics.empty();
}

std::string nic_note(const World& world, const KnownProcess& process) {
    const auto& policy = world.policy(process.policy);
    if (policy.model != Model::full && policy.model != Model::irq) return {};
    std::string why;
    if (process.is_elsewhere && !process.lost.empty())
        why = "it is in another network namespace, and the way to its NIC is lost: " + process.lost;
    else if (process.is_elsewhere)
        why = "it is in another network namespace, and no socket of it has named an interface there";
    else if (policy.nics_auto && process.nics.empty())
        why = "no socket of it has named a NIC";
    if (why.empty()) return {};
    const bool is_alone = process.is_elsewhere && policy.model == Model::full;
    return is_alone || acts_as_process(world, process.policy) ? fmt::format("{}; {}", why, as_process) : why;
}

std::vector<status::Finding> way_problems(const World& world, const TaskTable& tasks) {
    std::string nics; // that it may be
    for (const auto& nic : world.machine().nics)
        if (nic.has_default_route && !nic.is_detached) nics += (nics.empty() ? "" : ", ") + nic.name;
    std::map<std::size_t, const KnownProcess*> first;
    for (const auto& [pid, process] : tasks.processes()) {
        auto& known = first[process.policy];
        if (process.is_elsewhere && !process.lost.empty() && (known == nullptr || pid < known->id.tid))
            known = &process;
    }
    std::vector<status::Finding> problems;
    for (const auto& [policy, process] : first)
        if (process != nullptr)
            problems.push_back(status::finding(status::Ailment::way_lost, world.policy(policy).name, "nics",
                                               {std::to_string(process->id.tid), process->way, process->lost,
                                                nics.empty() ? "NAME" : nics}));
    return problems;
}

std::optional<status::ProcessStatus> TaskStatus::process(const KnownProcess& process) {
    if (shared_.root.is_live() && host::get_affinity(process.id.tid) == std::unexpected(ESRCH))
        return std::nullopt;
    const auto& world = *shared_.current.world;
    status::ProcessStatus value{.pid = process.id.tid,
                                .owner = owner_of(shared_.root, process.id),
                                .comm = process.comm,
                                .policy = world.policy(process.policy).name,
                                .nics = process.nics,
                                .nics_note = nic_note(world, process)};
    for (const auto& behaviour : shared_.behaviours)
        behaviour->describe(process, value);
    gives_way_ = world.policy(process.policy).drift != policy::Drift::enforce;
    holding_ = &*holdings_.try_emplace(value.policy).first;
    ++holding_->second.processes;
    return value;
}

std::optional<status::ThreadStatus> TaskStatus::thread(const KnownThread& thread, int pid) {
    status::ThreadStatus value{.tid = thread.id.tid,
                               .comm = thread.comm,
                               .state = thread.state,
                               .wanted = thread.wanted,
                               .present = thread.present,
                               .outcome = thread.outcome};
    const machine::Subject subject = machine::TaskMask{thread.id, pid, {}};
    value.is_fought_over = shared_.executor.rest(subject) != nullptr;
    if (const auto* trouble = shared_.executor.trouble(subject)) value.corrections = trouble->corrections;
    if (!read_again(pid, thread, value)) return std::nullopt;
    if (value.has_drifted && gives_way_) {
        value.has_drifted = false;
        value.state = State::yielded;
    }
    value.would_change = !shared_.acts() && (value.has_drifted || value.state == State::changes);
    value.has_drifted = value.has_drifted && shared_.acts();
    auto& held = holding_->second;
    ++held.threads;
    held.threads_wanted += gets_a_place(value.state) ? 1 : 0;
    count_joined(thread.joined.get());
    // A thread that is fought over counts as that alone, wherever it is at the moment.
    held.threads_drifted += value.has_drifted && !value.is_fought_over ? 1 : 0;
    const bool is_as_wanted =
        value.state == State::in_place && !value.has_drifted && !value.would_change && !value.is_fought_over;
    held.threads_in_place += is_as_wanted ? 1 : 0;
    return value;
}

void TaskStatus::count_joined(const planner::Joined* joined) {
    if (joined == nullptr || joined->policy != holding_->first) return;
    const auto* resolved = shared_.current.placements().find(joined->policy); // none: a reload has come
    if (resolved == nullptr || !planner::is_in_force(*resolved->policy, joined)) return;
    auto& counted = holding_->second.joined;
    ++counted.threads;
    if (!joined->slot.empty()) ++counted.slots[joined->slot];
    if (joined->serves && planner::may_join(*resolved->policy, policy::arrivals_slot))
        ++counted.slots[std::string(policy::arrivals_slot)];
}

/// False: there is no such thread any more.
bool TaskStatus::read_again(int pid, const KnownThread& thread, status::ThreadStatus& into) const {
    // There may be thousands. To check that the number was not used again is costly, so that is done only
    // where the mask differs.
    if (shared_.root.is_live()) {
        const auto mask = host::get_affinity(thread.id.tid);
        if (!mask) return mask.error() != ESRCH;
        if (*mask == thread.present) return true;
    }
    const auto now = inventory::read_thread(shared_.root, pid, thread.id.tid);
    if (!now) return true; // what was known last has to do
    if (!*now || (*now)->id != thread.id) return !shared_.root.is_live();
    into.present = (*now)->allowed;
    const auto& online = shared_.current.placements().online;
    const auto is_like = [&](const CpuSet& cpus) { return (into.present & online) == (cpus & online); };
    into.has_drifted = thread.state == State::in_place && !is_like(thread.present) && !is_like(thread.wanted);
    if (!shared_.acts() && thread.state == State::changes && is_like(thread.wanted))
        into.state = State::in_place;
    return true;
}

} // namespace affinityd::core
