// SPDX-License-Identifier: Apache-2.0
#include "planner/lanes.hpp"

#include "planner/flow_counts.hpp"
#include "planner/vectors.hpp"

#include <algorithm>
#include <bit>
#include <set>

#include <fmt/format.h>

namespace affinityd::planner {

namespace {

using netdev::Direction;
using netdev::Nic;
using policy::Policy;

bool carries_data(irq::Kind kind) {
    return kind == irq::Kind::rx || kind == irq::Kind::tx || kind == irq::Kind::txrx ||
           kind == irq::Kind::data_unknown;
}

/// Everything add_lanes works with for one interface.
struct Job {
    Compiled& compiled;
    const Machine& machine;
    const Nic& nic;
    std::vector<Vector> vectors;  ///< data vectors only
    std::vector<unsigned> queues; ///< distinct queue numbers, ascending
    std::vector<Slot> lanes;
    Placements& into;

    [[nodiscard]] std::size_t lane_of(unsigned queue) const {
        const auto place = std::ranges::lower_bound(queues, queue) - queues.begin();
        return static_cast<std::size_t>(place) % lanes.size();
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

std::vector<Slot> choose_lanes(const Compiled& compiled, const Machine& machine, const Nic& nic,
                               std::size_t wanted, LaneLoad& load) {
    const CpuSet near = near_cpus(machine, nic);
    const CpuSet usable = compiled.allowed.intersects(near) ? compiled.allowed & near : compiled.allowed;
    policy::Placement placement = compiled.policy->placement;
    placement.spread = policy::Spread::core;
    auto candidates = make_slots(machine.topology, placement, usable, {});
    const auto key = [&](const Slot& slot) { return machine.topology.core_of(slot.home.first()).first(); };
    std::vector<Slot> lanes;
    while (lanes.size() < wanted && !candidates.empty()) {
        const auto best = std::ranges::min_element(candidates, {}, [&](const Slot& slot) {
            const auto counted = load.find(key(slot));
            return counted == load.end() ? 0U : counted->second;
        });
        ++load[key(*best)];
        lanes.push_back(std::move(*best));
        candidates.erase(best);
    }
    // Lane order is the machine's, not that of loads: queue 0 next to queue 1.
    std::ranges::sort(lanes, {}, [](const Slot& slot) { return slot.home.first(); });
    return lanes;
}

/// The CPU that takes a lane's interrupts: the lane's own, or with `separate` a neighbour in its cache group.
unsigned interrupt_cpu(const Job& job, std::size_t lane) {
    const CpuSet& home = job.lanes[lane].home;
    if (!job.compiled.policy->separate) return home.first();
    CpuSet others = (job.machine.topology.llc_of(home.first()) & job.compiled.allowed) -
                    job.machine.topology.core_of(home.first());
    CpuSet free = others;
    for (const auto& slot : job.lanes)
        free -= slot.home;
    if (!free.empty()) others = free;
    if (others.empty()) return home.first();
    const auto choice = others.to_vector();
    return choice[lane % choice.size()];
}

std::string why(const Job& job, unsigned queue, std::size_t lane) {
    const bool full = job.compiled.policy->model == policy::Model::full;
    return fmt::format("{}: queue {} of {} on core {} near it{}", full ? "full" : "irq", queue, job.nic.name,
                       job.lanes[lane].home.to_list(), full ? ", with the tasks it serves" : "");
}

void add_interrupts(Job& job) {
    for (const auto& vector : job.vectors) {
        const auto* line = job.machine.irqs.find(vector.irq);
        if (line == nullptr || !line->requested) continue;
        const unsigned queue = vector.queue.value_or(0);
        const std::size_t lane = job.lane_of(queue);
        const CpuSet wanted{interrupt_cpu(job, lane)};
        const std::string& device = job.nic.device.empty() ? job.nic.name : job.nic.device;
        job.into.queues.push_back({IrqMask{device, vector.label, vector.irq}, *line->requested, wanted,
                                   job.nic.name, job.compiled.policy->name, why(job, queue, lane)});
        for (const int thread : line->threads)
            job.into.threads.insert_or_assign(
                thread, QueueThread{wanted, job.compiled.policy->name, why(job, queue, lane)});
    }
}

void add_napi_threads(Job& job) {
    for (const auto& queue : job.nic.queues) {
        if (!queue.napi_thread) continue;
        const std::size_t lane = job.lane_of(queue.index);
        job.into.threads.insert_or_assign(*queue.napi_thread, QueueThread{CpuSet{interrupt_cpu(job, lane)},
                                                                          job.compiled.policy->name,
                                                                          why(job, queue.index, lane)});
    }
}

/// CPUs of the lanes that a queue has: its own, or several where there are more lanes than queues.
CpuSet lane_cpus(const Job& job, unsigned queue, std::size_t queue_count) {
    CpuSet cpus;
    const std::size_t first = job.lane_of(queue);
    for (std::size_t lane = first; lane < job.lanes.size(); lane += queue_count)
        cpus |= job.lanes[lane].home;
    return cpus;
}

/// RFS brings a packet not only to one of the lanes but to that of the task that reads it. Numbers that are
/// larger already stay.
void add_flow_counts(Job& job, const std::string& device, const netdev::Queue& queue, std::size_t queues) {
    constexpr std::uint32_t usual_entries = 32768; // scaling.rst, suggested configuration
    if (job.compiled.policy->model != policy::Model::full || !job.machine.flow_entries || !queue.flow_count)
        return;
    const std::uint32_t entries = std::max(*job.machine.flow_entries, usual_entries);
    const std::uint32_t share =
        std::bit_floor(static_cast<std::uint32_t>(std::max<std::size_t>(1, entries / queues)));
    const auto& policy = job.compiled.policy->name;
    if (!std::ranges::any_of(job.into.queues, [](const QueueTarget& target) {
            return target.subject == Subject{machine_flows()};
        }))
        job.into.queues.push_back({machine_flows(), to_bits(*job.machine.flow_entries), to_bits(entries), "",
                                   policy, "RFS: where RPS is used"});
    job.into.queues.push_back({queue_flows(device, job.nic.name, queue.index), to_bits(*queue.flow_count),
                               to_bits(std::max(*queue.flow_count, share)), job.nic.name, policy,
                               "RFS: to the lane of the task that reads"});
}

void add_steering(Job& job) {
    const std::string& device = job.nic.device.empty() ? job.nic.name : job.nic.device;
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
        const std::string name = (is_tx ? "tx-" : "rx-") + std::to_string(queue.index);
        const std::string reason = is_tx            ? "XPS: sent from the CPUs of its lane"
                                   : wanted.empty() ? "RPS off: it would carry packets away from the lane"
                                                    : "RPS: fewer queues than lanes";
        job.into.queues.push_back({SteeringMask{device, job.nic.name, name}, *queue.steering, wanted,
                                   job.nic.name, job.compiled.policy->name, reason});
        if (!is_tx && !job.into.queues.back().wanted.empty()) add_flow_counts(job, device, queue, queues);
    }
}

std::size_t lanes_wanted(const Policy& policy, const Nic& nic, const Serving& serving, std::size_t queues) {
    if (policy.model == policy::Model::irq) return queues;
    const auto served = serving.find(policy.name);
    if (served == serving.end()) return queues;
    const auto units = served->second.find(nic.name);
    return units == served->second.end() || units->second == 0 ? queues : units->second;
}

bool is_taken(const Placements& placements, const std::string& nic) {
    return std::ranges::any_of(placements.queues,
                               [&](const QueueTarget& target) { return target.nic == nic; });
}

} // namespace

void add_lanes(Compiled& compiled, const Machine& machine, const std::vector<std::string>& nics,
               const Serving& serving, LaneLoad& load, Placements& into) {
    const Policy& policy = *compiled.policy;
    if (policy.model != policy::Model::irq && policy.model != policy::Model::full) return;
    for (const auto& name : nics) {
        const Nic* nic = machine.nic(name);
        if (nic == nullptr) continue;
        if (is_taken(into, name)) {
            into.problems.push_back(
                {policy.name, name, "its queues are already placed by a policy of higher order"});
            continue;
        }
        Job job{compiled, machine, *nic, nic_vectors(*nic, machine.irqs), {}, {}, into};
        std::erase_if(job.vectors, [](const Vector& vector) { return !carries_data(vector.kind); });
        job.queues = queue_numbers(job.vectors, *nic);
        if (job.queues.empty()) {
            into.problems.push_back(
                {policy.name, name, "it has no queue that could be placed now (is the link down?)"});
            continue;
        }
        job.lanes = choose_lanes(compiled, machine, *nic,
                                 lanes_wanted(policy, *nic, serving, job.queues.size()), load);
        add_interrupts(job);
        add_napi_threads(job);
        add_steering(job);
        compiled.nics.push_back({name, std::move(job.lanes)});
    }
    if (policy.model != policy::Model::full) return;
    for (std::size_t turn = 0, added = 1; added > 0; ++turn) {
        added = 0;
        for (const auto& deal : compiled.nics)
            if (turn < deal.lanes.size()) {
                compiled.all_lanes.push_back(deal.lanes[turn]);
                ++added;
            }
    }
}

} // namespace affinityd::planner
