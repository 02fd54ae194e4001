// SPDX-License-Identifier: Apache-2.0
#include "planner/lanes.hpp"

#include "machine/near.hpp"
#include "planner/lane_choice.hpp"

#include <algorithm>
#include <bit>
#include <set>

namespace affinityd::planner {

namespace {

using machine::Machine;
using machine::Vector;
using netdev::Direction;
using netdev::Nic;
using policy::Policy;

bool carries_data(const Vector& vector) {
    return vector.kind == irq::Kind::rx || vector.kind == irq::Kind::tx || vector.kind == irq::Kind::txrx ||
           vector.kind == irq::Kind::data_unknown;
}

/// One interface whose queues are given to lanes.
struct Job {
    ResolvedPolicy& resolved;
    const Machine& machine;
    const Nic& nic;
    std::string device;           ///< as the subjects name it
    std::vector<Vector> vectors;  ///< data vectors only
    std::vector<unsigned> queues; ///< distinct queue numbers, ascending
    std::vector<Slot> lanes;
    std::vector<unsigned> interrupt_cpus; ///< of each lane
    Placements& into;

    [[nodiscard]] std::size_t lane_of(unsigned queue) const {
        const auto place = std::ranges::lower_bound(queues, queue) - queues.begin();
        return static_cast<std::size_t>(place) % lanes.size();
    }
    [[nodiscard]] CpuSet interrupt_mask(std::size_t lane) const { return CpuSet{interrupt_cpus[lane]}; }
    [[nodiscard]] Reason why(unsigned queue, std::size_t lane) const {
        return OnLane{resolved.policy->model, nic.name, queue, lanes[lane].cpus};
    }
    void want(Subject subject, Setting wanted, Reason reason) const {
        into.queues.push_back(
            {std::move(subject), std::move(wanted), nic.name, resolved.policy->name, std::move(reason)});
    }
};

std::vector<unsigned> queue_numbers(const std::vector<Vector>& vectors, const Nic& nic) {
    std::set<unsigned> numbers;
    for (const auto& vector : vectors)
        numbers.insert(vector.queue.value_or(0)); // one line for all queues counts as the first
    // Interfaces without interrupts (veth) still have receive queues, and threads that do their work.
    if (numbers.empty())
        for (const auto& queue : nic.queues)
            if (queue.direction == Direction::rx) numbers.insert(queue.index);
    return {numbers.begin(), numbers.end()};
}

void add_interrupts(Job& job) {
    for (const auto& vector : job.vectors) {
        const auto* line = job.machine.irqs.find(vector.irq);
        if (line == nullptr || !line->requested) continue;
        const unsigned queue = vector.queue.value_or(0);
        const std::size_t lane = job.lane_of(queue);
        const CpuSet wanted = job.interrupt_mask(lane);
        job.want(machine::irq_subject(job.nic, vector), wanted, job.why(queue, lane));
        for (const int thread : line->threads)
            job.into.threads.insert_or_assign(
                thread, QueueThread{wanted, job.resolved.policy->name, job.why(queue, lane)});
    }
}

void add_napi_threads(Job& job) {
    for (const auto& queue : job.nic.queues) {
        if (!queue.napi_thread) continue;
        const std::size_t lane = job.lane_of(queue.index);
        job.into.threads.insert_or_assign(
            *queue.napi_thread,
            QueueThread{job.interrupt_mask(lane), job.resolved.policy->name, job.why(queue.index, lane)});
    }
}

/// CPUs of the lanes that a queue has: its own, or several where there are more lanes than queues.
CpuSet lane_cpus(const Job& job, unsigned queue, std::size_t queue_count) {
    CpuSet cpus;
    for (std::size_t lane = job.lane_of(queue); lane < job.lanes.size(); lane += queue_count)
        cpus |= job.lanes[lane].cpus;
    return cpus;
}

/// RFS brings a packet not only to one of the lanes but to that of the task that reads it.
void add_flow_tables(Job& job, const netdev::Queue& queue, std::size_t queues) {
    constexpr std::uint32_t usual_entries = 32768; // scaling.rst, suggested configuration
    if (job.resolved.policy->model != policy::Model::full || !job.machine.flow_entries || !queue.flow_count)
        return;
    const std::uint32_t entries = std::max(*job.machine.flow_entries, usual_entries);
    const auto share = std::bit_floor(static_cast<std::uint32_t>(std::max<std::size_t>(1, entries / queues)));
    const Subject machine_table = FlowTable{};
    if (std::ranges::find(job.into.queues, machine_table, &QueueTarget::subject) == job.into.queues.end())
        job.into.queues.push_back(
            {machine_table, FlowCount{entries}, "", job.resolved.policy->name, Steering::rfs_machine});
    job.want(FlowTable{job.device, queue.index, job.nic.name}, FlowCount{share}, Steering::rfs_queue);
}

void add_steering(Job& job) {
    const auto count = [&](Direction direction) {
        return static_cast<std::size_t>(
            std::ranges::count(job.nic.queues, direction, &netdev::Queue::direction));
    };
    for (const auto& queue : job.nic.queues) {
        if (!queue.steering) continue;
        const bool is_tx = queue.direction == Direction::tx;
        const std::size_t queues = count(queue.direction);
        CpuSet wanted;
        if (is_tx || job.lanes.size() > queues) wanted = lane_cpus(job, queue.index, queues);
        const bool is_spread = !is_tx && !wanted.empty();
        const auto reason = is_tx ? Steering::xps_lane : is_spread ? Steering::rps_lanes : Steering::rps_off;
        job.want(SteeringMask{job.device, queue.direction, queue.index, job.nic.name}, std::move(wanted),
                 reason);
        if (is_spread) add_flow_tables(job, queue, queues);
    }
}

std::size_t lanes_wanted(const Policy& policy, const Nic& nic, const NicUsage& usage, std::size_t queues) {
    if (policy.model == policy::Model::irq) return queues;
    const auto served = usage.find(policy.name);
    if (served == usage.end()) return queues;
    const auto tasks = served->second.find(nic.name);
    return tasks == served->second.end() || tasks->second == 0 ? queues : tasks->second;
}

/// Lanes of all interfaces in turn: eth0's first, eth1's first, eth0's second, ...
std::vector<Slot> in_turn(const std::vector<NicLanes>& nics) {
    std::vector<Slot> all;
    for (std::size_t turn = 0, added = 1; added > 0; ++turn) {
        added = 0;
        for (const auto& nic : nics)
            if (turn < nic.lanes.size()) {
                all.push_back(nic.lanes[turn]);
                ++added;
            }
    }
    return all;
}

void add_nic(ResolvedPolicy& resolved, const Machine& machine, const Nic& nic, const NicUsage& usage,
             LaneLoad& load, Placements& into) {
    const Policy& policy = *resolved.policy;
    if (std::ranges::find(into.queues, nic.name, &QueueTarget::nic) != into.queues.end()) {
        into.problems.push_back(
            {policy.name, nic.name, "its queues are already placed by a policy of higher order"});
        return;
    }
    Job job{resolved, machine, nic, nic.device.empty() ? nic.name : nic.device, {}, {}, {}, {}, into};
    std::ranges::copy_if(machine.vectors_of(nic.name), std::back_inserter(job.vectors), carries_data);
    job.queues = queue_numbers(job.vectors, nic);
    if (job.queues.empty()) {
        into.problems.push_back(
            {policy.name, nic.name, "it has no queue that could be placed now (is the link down?)"});
        return;
    }
    job.lanes = choose_lanes(resolved, machine, nic, lanes_wanted(policy, nic, usage, job.queues.size()),
                             load.expected);
    job.interrupt_cpus = interrupt_cpus(resolved, machine, job.lanes, load);
    add_interrupts(job);
    add_napi_threads(job);
    add_steering(job);
    resolved.nics.push_back({nic.name, std::move(job.lanes), machine::near_cpus(machine, nic)});
}

} // namespace

void add_lanes(ResolvedPolicy& resolved, const Machine& machine, const std::vector<std::string>& nics,
               const NicUsage& usage, LaneLoad& load, Placements& into) {
    const auto model = resolved.policy->model;
    if (model != policy::Model::irq && model != policy::Model::full) return;
    for (const auto& name : nics)
        if (const Nic* nic = machine.nic(name)) add_nic(resolved, machine, *nic, usage, load, into);
    if (model == policy::Model::full) resolved.all_lanes = in_turn(resolved.nics);
}

} // namespace affinityd::planner
