// SPDX-License-Identifier: Apache-2.0
#include "app/overview.hpp"

#include "app/nic_notes.hpp"
#include "host/scheduler.hpp"
#include "inventory/lookup.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

using State = planner::ThreadPlan::State;

/// That a policy does not do what it says, and why.
std::string policy_note(const World& world, std::size_t policy, std::size_t processes) {
    if (auto note = nic_note(world, policy, processes); !note.empty()) return note;
    const auto& resolved = world.placements().policies[policy];
    const auto& online = world.placements().online;
    if (resolved.policy->model == policy::Model::irq || !planner::restricts_nothing(resolved, online))
        return {};
    return "restricts nothing on this machine: each of its places has all online CPUs (" + online.to_list() +
           ")";
}

/// False: the policy leaves it alone, or to whoever changed it after us.
bool gets_a_place(State state) {
    return state == State::in_place || state == State::changes || state == State::put_off ||
           state == State::outside || state == State::immovable;
}

/// All CPUs that a policy or one of its thread rules may use.
CpuSet cpus_of(const planner::ResolvedPolicy& resolved) {
    CpuSet cpus = resolved.allowed;
    for (std::size_t i = 1; i < resolved.distributions.size(); ++i)
        for (const auto& slot : resolved.distributions[i])
            cpus |= slot.cpus;
    return cpus;
}

} // namespace

status::ThreadStatus thread_status(const KnownThread& thread, int pid, const enforcer::Executor& executor) {
    status::ThreadStatus value{.tid = thread.id.tid,
                               .comm = thread.comm,
                               .state = thread.state,
                               .wanted = thread.wanted,
                               .present = thread.present,
                               .outcome = thread.outcome};
    const machine::Subject subject = machine::TaskMask{thread.id, pid, {}};
    const auto note = executor.note(subject);
    value.is_fought_over = note && note->kind == enforcer::Backoff::Note::Kind::fought_over;
    value.corrections = executor.corrections(subject);
    return value;
}

void read_again(const host::Root& root, int pid, const KnownThread& thread, const CpuSet& online,
                status::ThreadStatus& into) {
    // There may be thousands: whether the number still means this thread is asked only where it is another
    // mask.
    if (root.is_live())
        if (const auto mask = host::get_affinity(thread.id.tid); !mask || *mask == thread.present) return;
    const auto now = inventory::read_thread(root, pid, thread.id.tid);
    if (!now || !*now || (*now)->id != thread.id) return; // what was known last has to do
    into.present = (*now)->allowed;
    const auto is_like = [&](const CpuSet& cpus) { return (into.present & online) == (cpus & online); };
    into.has_drifted = thread.state == State::in_place && !is_like(thread.present) && !is_like(thread.wanted);
}

std::vector<status::PolicyStatus> policy_status(const World& world, const TaskTable& tasks,
                                                const Releases& releases) {
    std::vector<status::PolicyStatus> list;
    for (std::size_t i = 0; i < world.policies().policies.size(); ++i) {
        const auto& policy = world.policy(i);
        const auto& resolved = world.placements().policies[i];
        status::PolicyStatus value{.name = policy.name,
                                   .description = policy.description,
                                   .file = policy.at.file,
                                   .model = policy.model,
                                   .cpus = cpus_of(resolved),
                                   .active = resolved.active,
                                   .released = releases.policy(policy.name)};
        for (const auto& lanes : resolved.nics) {
            value.nics.insert(value.nics.end(), lanes.nics.begin(), lanes.nics.end());
            auto& shown = value.lanes.emplace_back(status::LanesStatus{lanes.nics, lanes.spares, {}});
            for (const auto& lane : lanes.lanes)
                shown.cores.push_back(lane.cpus);
        }
        list.push_back(std::move(value));
    }
    for (const auto& [pid, process] : tasks.processes()) {
        auto& held = list[process.policy].held;
        ++held.processes;
        held.threads += process.threads.size();
        for (const auto& thread : process.threads) {
            held.threads_wanted += gets_a_place(thread.state) ? 1 : 0;
            held.threads_in_place += thread.state == State::in_place ? 1 : 0;
        }
    }
    for (std::size_t i = 0; i < list.size(); ++i)
        list[i].note = policy_note(world, i, list[i].held.processes);
    return list;
}

status::ProcessStatus process_status(const World& world, const KnownProcess& process,
                                     const MemoryFollower& memory) {
    status::ProcessStatus value{.pid = process.id.tid,
                                .owner = process.owner,
                                .comm = process.comm,
                                .policy = world.policy(process.policy).name,
                                .nics = process.nics,
                                .nics_note = nic_note(world, process)};
    if (const auto* moved = memory.find(process.id)) {
        value.memory_nodes = moved->nodes;
        value.memory_state = moved->text;
    }
    return value;
}

void add_outcomes(const enforcer::Executor& executor, status::Counters& into) {
    for (const auto& [subject, refusal] : executor.refusals().entries())
        into.refused.emplace_back(subject, to_string(refusal));
    const auto& counts = executor.counts();
    for (std::size_t i = 0; i <= static_cast<std::size_t>(enforcer::Outcome::failed); ++i)
        if (counts[i] > 0)
            into.outcomes[std::string(to_string(static_cast<enforcer::Outcome>(i)))] = counts[i];
}

void add_drift(const enforcer::Executor& executor, const std::map<std::string, std::size_t>& drifted,
               std::vector<status::PolicyStatus>& into) {
    for (auto& policy : into) {
        auto& held = policy.held;
        if (const auto found = executor.corrected().find(policy.name); found != executor.corrected().end())
            held.drift_put_right = found->second;
        const auto found = drifted.find(policy.name);
        if (found == drifted.end()) continue;
        held.threads_drifted = found->second;
        held.threads_in_place -= std::min(held.threads_in_place, found->second);
    }
}

std::vector<planner::Problem> lack_problems(const enforcer::Executor& executor, const EventQueue& events) {
    std::vector<planner::Problem> list;
    if (!events.absence().empty())
        list.push_back({{},
                        "process events",
                        events.absence() +
                            ": new processes are found by the periodic pass only (reconcile in "
                            "affinityd.yaml)",
                        "give the daemon CAP_NET_ADMIN and the machine's own network, PID and user "
                        "namespaces, as podman run --privileged --network=host --pid=host does"});
    const auto count = std::ranges::count(executor.refusals().entries(), enforcer::Outcome::not_permitted,
                                          [](const auto& entry) { return entry.second.outcome; });
    if (count > 0)
        list.push_back(
            {{},
             "rights",
             fmt::format("{} of the changes now wanted {} not permitted", count, count == 1 ? "is" : "are"),
             "tasks of other users need CAP_SYS_NICE; interrupts and queues need root, and a /proc and /sys "
             "that can be written"});
    return list;
}

void add_coexistence(const Coexistence& coexistence, status::Overview& into) {
    for (const auto& peer : coexistence.peers())
        into.peers.push_back({peer.runtime_dir, peer.shared});
    for (const auto& writer : coexistence.other_writers())
        into.other_writers.push_back({writer.name, writer.where, writer.note});
}

} // namespace affinityd::app
