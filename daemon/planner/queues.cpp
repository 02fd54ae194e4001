// SPDX-License-Identifier: Apache-2.0
// The results of the lane rule as targets: masks of interrupts, steering maps, threads of queues.
#include "planner/lanes.hpp"

#include <algorithm>
#include <bit>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityd::planner {

namespace {

using machine::Machine;
using machine::Vector;
using netdev::Direction;
using netdev::Nic;

/// An interface whose queues are given to lanes.
struct Job {
    ResolvedPolicy& resolved;
    const Machine& machine;
    const Nic& nic;
    std::string device; ///< as the subjects name it
    bool is_port;       ///< one of several interfaces of the device
    Placements& into;
    std::vector<Vector> vectors{};  ///< data vectors only
    std::vector<unsigned> queues{}; ///< distinct queue numbers, ascending
    /// Interrupts of which it is not known whose queues they serve, ascending: each counts as one more queue.
    std::vector<unsigned> unnumbered{};
    const NicLanes* lanes = nullptr;                ///< once they are dealt
    const std::vector<QueuePlace>* dealt = nullptr; ///< of this interface

    [[nodiscard]] std::size_t places() const { return queues.size() + unnumbered.size(); }
    [[nodiscard]] std::size_t place_of(unsigned queue) const {
        const auto own = std::ranges::lower_bound(queues, queue);
        if (own != queues.end() && *own == queue) return static_cast<std::size_t>(own - queues.begin());
        // A queue without an interrupt of its own is dealt to those that have one.
        return unnumbered.empty() ? queue % queues.size() : queues.size() + queue % unnumbered.size();
    }
    [[nodiscard]] std::size_t place_of(const Vector& vector) const {
        if (vector.queue) return place_of(*vector.queue);
        const auto own = std::ranges::lower_bound(unnumbered, vector.irq);
        return queues.size() + static_cast<std::size_t>(own - unnumbered.begin());
    }
    [[nodiscard]] const QueuePlace& place(unsigned queue) const { return (*dealt)[place_of(queue)]; }
    [[nodiscard]] LaneNic for_rule(const Interfaces& interfaces) const;
    [[nodiscard]] Reason why(std::optional<unsigned> queue, const QueuePlace& place) const;
    void want(Subject subject, Setting wanted, Reason reason) const {
        into.queues.push_back(
            {std::move(subject), std::move(wanted), nic.name, resolved.policy->name, std::move(reason)});
    }
};

Job job_for(ResolvedPolicy& resolved, const Machine& machine, const Nic& nic, Placements& into) {
    const bool is_port =
        !nic.device.empty() && std::ranges::count(machine.nics, nic.device, &Nic::device) > 1;
    Job job{resolved, machine, nic, nic.device.empty() ? nic.name : nic.device, is_port, into};
    std::set<unsigned> numbers;
    for (const auto& vector : machine.vectors_of(nic.name)) { // ascending
        if (!irq::is_data(vector.kind)) continue;
        job.vectors.push_back(vector);
        if (vector.queue)
            numbers.insert(*vector.queue);
        else
            job.unnumbered.push_back(vector.irq);
    }
    // Interfaces without interrupts (veth) still have receive queues, and threads that do their work.
    if (job.vectors.empty())
        for (const auto& queue : nic.queues)
            if (queue.direction == Direction::rx) numbers.insert(queue.index);
    job.queues = {numbers.begin(), numbers.end()};
    return job;
}

LaneNic Job::for_rule(const Interfaces& interfaces) const {
    LaneNic its{.name = nic.name,
                .id = {nic.ifindex, nic.device},
                .near = resolved.policy->model == policy::Model::full ? interfaces.side_of(nic)
                                                                      : machine::near_cpus(machine, nic),
                .takes = std::vector<bool>(places()),
                .is_spare = interfaces.is_spare(nic),
                .hands_on = false};
    for (const auto& queue : nic.queues)
        if (queue.direction == Direction::rx && places() > 0) {
            its.takes[place_of(queue.index)] = true;
            its.hands_on = its.hands_on || queue.steering;
        }
    if (std::ranges::count(its.takes, true) == 0) its.takes.flip();
    return its;
}

/// A queue's interrupt, or the kernel thread that does its work, is on the queue's lane.
Reason Job::why(std::optional<unsigned> queue, const QueuePlace& place) const {
    const bool is_full = resolved.policy->model == policy::Model::full;
    const bool is_apart = resolved.policy->separate && is_full;
    std::string near;
    for (const auto& name : lanes->nics)
        if (const auto* other = machine.nic(name); other != nullptr &&
                                                   machine::near_cpus(machine, *other).contains(place.cpu) &&
                                                   (near.empty() || name == nic.name))
            near = name;
    const bool is_near_another = !near.empty() && near != nic.name;
    std::string where;
    if (!near.empty()) where = " near " + (is_near_another ? near : "it");
    if (is_full) where += is_near_another ? ", with the tasks that both serve" : ", with the tasks it serves";
    const auto core = place.seat.contains(place.cpu) ? place.seat : machine.topology.core_of(place.cpu);
    const auto beside =
        is_apart ? fmt::format("on CPU {}, beside its lane on core {}", place.cpu, place.seat.to_list())
                 : "on core " + core.to_list();
    if (nic.is_moved) where += "; its RPS and XPS are a container's, and stay";
    return {fmt::format("{}{}: {} of {} {}{}", is_full ? "full" : "irq", is_apart ? ", separate" : "",
                        queue ? fmt::format("queue {}", *queue) : "a queue", nic.name, beside, where),
            queue};
}

void add_interrupts(Job& job) {
    for (const auto& vector : job.vectors) {
        const auto* line = job.machine.irqs.find(vector.irq);
        if (line == nullptr || !line->requested || line->fixed) continue;
        const auto& place = (*job.dealt)[job.place_of(vector)];
        job.want(machine::irq_subject(job.nic, vector), CpuSet{place.cpu}, job.why(vector.queue, place));
        for (const int thread : line->threads)
            job.into.threads.insert_or_assign(
                thread, QueueThread{{place.cpu}, job.resolved.policy->name, job.why(vector.queue, place)});
    }
}

void add_napi_threads(Job& job) {
    for (const auto& queue : job.nic.queues)
        if (queue.napi_thread)
            job.into.threads.insert_or_assign(*queue.napi_thread,
                                              QueueThread{{job.place(queue.index).cpu},
                                                          job.resolved.policy->name,
                                                          job.why(queue.index, job.place(queue.index))});
}

/// Also where each lane has its queue: packets of which no reader is known stay where they arrive, as there
/// is no map of RPS (get_rps_cpu() in net/core/dev.c).
bool brings_flows(const Job& job) { return job.resolved.policy->steer == policy::Steer::flows; }

/// RFS brings a packet not only to one of the lanes but to that of the task that reads it.
void add_flow_tables(Job& job, const netdev::Queue& queue, std::size_t queues) {
    constexpr std::uint32_t usual_entries = 32768; // scaling.rst, suggested configuration
    constexpr const char* by_flows = "steer: flows: packets go on to the CPU of the thread that reads them, "
                                     "which costs an interrupt between CPUs where "
                                     "they arrive elsewhere";
    if (job.resolved.policy->model != policy::Model::full || !job.machine.flow_entries || !queue.flow_count)
        return;
    const std::uint32_t entries = std::max(*job.machine.flow_entries, usual_entries);
    const auto share = std::bit_floor(static_cast<std::uint32_t>(std::max<std::size_t>(1, entries / queues)));
    const Subject machine_table = FlowTable{};
    if (std::ranges::find(job.into.queues, machine_table, &QueueTarget::subject) == job.into.queues.end())
        job.into.queues.push_back({machine_table, FlowCount{entries}, "", job.resolved.policy->name,
                                   brings_flows(job) ? by_flows : "RFS: where RPS is used"});
    job.want(FlowTable{job.device, queue.index, job.nic.name, job.nic.ifindex, job.is_port, job.nic.folder},
             FlowCount{share}, brings_flows(job) ? by_flows : "RFS: to the lane of the task that reads");
}

void add_steering(Job& job) {
    if (!job.resolved.policy->steering) return;
    const auto queues = static_cast<std::size_t>(
        std::ranges::count(job.nic.queues, Direction::rx, &netdev::Queue::direction));
    for (const auto& queue : job.nic.queues) {
        if (!queue.steering) continue;
        const bool is_tx = queue.direction == Direction::tx;
        const auto& place = job.place(queue.index);
        const auto& rps = job.resolved.rps.empty() ? place.handed_to : job.resolved.rps;
        CpuSet wanted = is_tx ? place.sent_from : rps;
        const bool is_spread = !is_tx && !wanted.empty();
        Reason reason = is_tx ? "XPS: sent from the CPUs of its lane"
                              : "RPS off: it would carry packets away from the lane";
        if (is_spread && !job.resolved.rps.empty())
            reason = "RPS to the CPUs that rps names";
        else if (is_spread)
            reason = fmt::format("RPS hands its packets on to the lanes of {}", wanted.to_list());
        job.want(SteeringMask{job.device, queue.direction, queue.index, job.nic.name, job.nic.ifindex,
                              job.is_port, job.nic.folder},
                 std::move(wanted), std::move(reason));
        if (is_spread || (!is_tx && brings_flows(job))) add_flow_tables(job, queue, queues);
    }
}

/// Seats of all interfaces in turn: eth0's first, eth1's first, eth0's second, ...
std::vector<Slot> in_turn(const std::vector<NicLanes>& nics, unsigned rule, const CpuSet& allowed) {
    std::vector<const SeatRow*> rows;
    for (const auto& nic : nics)
        if (const auto* row = nic.row(rule, nullptr, allowed)) rows.push_back(row);
    std::vector<Slot> all;
    CpuSet seen;
    for (std::size_t turn = 0, added = 1; added > 0; ++turn) {
        added = 0;
        for (const auto* row : rows)
            if (turn < row->slots.size()) {
                ++added;
                if (!seen.contains(row->slots[turn].cpus.first())) all.push_back(row->slots[turn]);
                seen.insert(row->slots[turn].cpus.first());
            }
    }
    return all;
}

/// The cores of readers are fewer than the readers, or than the queues, only as their cpusets say so.
void tell_of_cut(const ResolvedPolicy& resolved, const Interfaces::Group& group, const NicLanes& lanes,
                 Placements& into) {
    for (const auto& row : lanes.rows) {
        if (row.is_open || row.may == resolved.allowed) continue;
        std::size_t readers = 0;
        for (const auto& [one, count] : group.readers)
            if (one.rule == row.rule && one.nics == row.nics && (resolved.allowed & one.cpuset) == row.may)
                readers += count;
        if (readers <= row.slots.size()) continue;
        into.problems.push_back({resolved.policy->name, lanes.name,
                                 fmt::format("the cpuset of {} of its readers has {} of the policy's cores, "
                                             "which they share",
                                             readers, row.slots.size()),
                                 "give their unit or container more CPUs (AllowedCPUs=, cpuset)"});
    }
}

void add_group(ResolvedPolicy& resolved, const Interfaces& interfaces, const Interfaces::Group& group,
               const std::map<CpuSet, std::size_t>& all_readers, const std::vector<const Nic*>& all_nics,
               const NicLanes* before, LaneLoad& load, Placements& into) {
    const auto& machine = interfaces.machine();
    const auto& policy = *resolved.policy;
    const bool is_full = policy.model == policy::Model::full;
    std::vector<Job> jobs;
    std::vector<Job> others; // whose queues are placed by another policy already
    for (const auto* nic : group.nics) {
        auto job = job_for(resolved, machine, *nic, into);
        if (load.placed.contains(nic->name))
            others.push_back(std::move(job));
        else if (job.places() > 0)
            jobs.push_back(std::move(job));
        else
            into.problems.push_back({policy.name, nic->name,
                                     "it has no queue that could be placed now (is the link down?)",
                                     fmt::format("ip link set {} up", nic->name)});
    }
    for (const auto& other : others)
        into.problems.push_back(
            {policy.name, other.nic.name,
             "its queues are already placed by policy " + load.placed.at(other.nic.name) +
                 (is_full && jobs.empty() ? ": affinity: full acts as process near it" : ""),
             "leave it out of nics in one of the two policies"});
    const bool has_queues = !jobs.empty();
    if (!has_queues && !is_full) return;
    auto& its = has_queues ? jobs : others; // tasks are near the interface all the same
    if (its.empty()) return;
    LaneQuestion question{.resolved = resolved,
                          .topology = machine.topology,
                          .nics = {},
                          .readers = group.readers,
                          .all_readers = all_readers,
                          .before = before,
                          .serves_tasks = is_full,
                          .has_queues = has_queues};
    for (const auto& job : its)
        question.nics.push_back(job.for_rule(interfaces));
    for (const auto* other : all_nics)
        if (std::ranges::find(group.nics, other) == group.nics.end())
            question.others.push_back(machine::near_cpus(machine, *other));
    const auto& lanes = resolved.nics.emplace_back(deal_lanes(question, load));
    for (std::size_t i = 0; has_queues && i < jobs.size(); ++i) {
        auto& job = jobs[i];
        job.lanes = &lanes;
        job.dealt = &lanes.queues[i];
        const auto targets = into.queues.size();
        add_interrupts(job);
        add_napi_threads(job);
        add_steering(job);
        if (into.queues.size() > targets) load.placed.emplace(job.nic.name, policy.name);
        std::ranges::move(interrupt_problems(resolved, machine, job.nic), std::back_inserter(into.problems));
    }
    tell_of_cut(resolved, group, lanes, into);
}

/// The targets of one line, the one that decides first.
using Sharers = std::vector<QueueTarget*>;

const IrqMask* line_of(const QueueTarget& target) {
    const auto* irq = std::get_if<IrqMask>(&target.subject);
    return irq != nullptr && irq->is_line ? irq : nullptr;
}

/// False while its link is down and its handler is freed: the line's other handlers stand for it then.
bool has_handler(const Machine& machine, const QueueTarget& target) {
    const auto& label = line_of(target)->label;
    if (label == target.nic) return true;
    if (machine.nic(label) != nullptr) return false;
    // Named after the driver, or a handler of another device altogether.
    const auto* nic = machine.nic(target.nic);
    return nic == nullptr || nic->up;
}

/// Whom else the line serves: interfaces with their policies, and the names of other handlers.
std::string others(const irq::Irq& line, const Sharers& sharers, const QueueTarget& target) {
    std::vector<std::string> names;
    for (const auto* other : sharers)
        if (other->nic != target.nic) names.push_back(other->nic + " of policy " + other->policy);
    for (const auto& action : line.actions) {
        const bool is_told = action == target.nic || action == line_of(target)->label ||
                             std::ranges::find(names, action) != names.end() ||
                             std::ranges::find(sharers, action, &QueueTarget::nic) != sharers.end();
        if (!is_told) names.push_back(action);
    }
    return fmt::format("{}", fmt::join(names, ", "));
}

void settle(const Machine& machine, const irq::Irq& line, Sharers sharers, Placements& into) {
    std::ranges::stable_partition(sharers, [&](const auto* target) { return has_handler(machine, *target); });
    const auto& first = *sharers.front();
    for (unsigned rank = 0; auto* target : sharers) {
        target->rank = rank++;
        target->shared_with = others(line, sharers, *target);
        if (target->rank == 0 || target->wanted == first.wanted) continue;
        if (target->policy != first.policy)
            into.problems.push_back(
                {target->policy, target->nic,
                 fmt::format(
                     "its interrupt {} is shared with {} of policy {}, which comes first: it is on CPU "
                     "{} and not on CPU {}",
                     line.number, first.nic, first.policy, first.wanted.to_string(),
                     target->wanted.to_string()),
                 "let one policy place both interfaces"});
    }
    for (const int thread : line.threads)
        into.threads.insert_or_assign(thread, QueueThread{first.wanted.cpus(), first.policy, first.reason});
}

} // namespace

void add_lanes(ResolvedPolicy& resolved, const Interfaces& interfaces,
               const std::vector<Interfaces::Group>& groups, const ResolvedPolicy* before, LaneLoad& load,
               Placements& into) {
    const auto& policy = *resolved.policy;
    for (auto& name : interfaces.hollow(policy))
        into.problems.push_back(
            {policy.name, std::move(name),
             "nothing of hardware is under it: it has no ports, or only those of guests and containers, "
             "which are left alone unless they are named themselves",
             "name its ports in nics"});
    resolved.nics.reserve(groups.size());
    std::map<CpuSet, std::size_t> all_readers;
    std::vector<const Nic*> all_nics;
    for (const auto& group : groups)
        all_nics.insert(all_nics.end(), group.nics.begin(), group.nics.end());
    for (const auto& group : groups)
        for (const auto& [readers, count] : group.readers)
            if (resolved.reads(readers.rule))
                all_readers[readers.cpuset.empty() ? resolved.allowed : resolved.allowed & readers.cpuset] +=
                    count;
    for (const auto& group : groups)
        add_group(resolved, interfaces, group, all_readers, all_nics, earlier_lanes(group, before), load,
                  into);
    for (unsigned rule = 0; rule < resolved.placements.size(); ++rule)
        resolved.all_seats.push_back(in_turn(resolved.nics, rule, resolved.allowed));
}

void add_ends(const ResolvedPolicy& resolved, const Machine& machine, const NicUsage& usage, LaneLoad& load,
              Placements& into) {
    const auto& policy = *resolved.policy;
    const auto ends = usage.ends.find(policy.name);
    if (ends == usage.ends.end() || !policy.steering || !resolved.rps.empty() || resolved.nics.empty())
        return;
    for (const auto& name : ends->second) {
        const auto* nic = machine.nic(name);
        if (nic == nullptr || !load.placed.emplace(nic->name, policy.name).second) continue;
        for (const auto& queue : nic->queues)
            if (queue.direction == Direction::rx && queue.steering)
                into.queues.push_back({SteeringMask{nic->name, queue.direction, queue.index, nic->name,
                                                    nic->ifindex, false, nic->folder},
                                       CpuSet(), nic->name, policy.name,
                                       "RPS off: it would carry a container's packets away from the lane"});
    }
}

void tell_of_mixed(const topology::Topology& topology, Placements& into) {
    const auto cores_of = [&](const NicLanes& lanes) {
        CpuSet cores;
        for (const auto& row : lanes.rows)
            for (const auto& slot : row.slots)
                if (!row.is_open) cores |= topology.core_of(slot.cpus.first());
        return cores;
    };
    CpuSet of_workers;
    for (const auto& resolved : into.policies)
        for (const auto& lanes : resolved.nics)
            of_workers |= cores_of(lanes);
    for (const auto& resolved : into.policies)
        for (const auto& lanes : resolved.nics) {
            if (!resolved.policy->separate || lanes.queues.empty()) continue;
            const CpuSet own = cores_of(lanes);
            CpuSet seats, with_own, with_others;
            for (const auto& nic : lanes.queues)
                for (const auto& queue : nic) {
                    seats.insert(queue.seat.first());
                    if (own.contains(queue.cpu))
                        with_own.insert(queue.seat.first());
                    else if (of_workers.contains(queue.cpu))
                        with_others.insert(queue.seat.first());
                }
            const auto report = [&](const CpuSet& mixed, const char* where) {
                if (!mixed.empty())
                    into.problems.push_back(
                        {resolved.policy->name, lanes.name,
                         fmt::format("separate: interrupts of {} of its {} lanes are on cores of workers{}",
                                     mixed.count(), lanes.seats(), where),
                         "give the policy more cpus, or leave separate out"});
            };
            report(with_own, ", as the cache groups have no others for them");
            report(with_others, " of other policies or interfaces");
        }
}

void settle_shared_lines(const Machine& machine, Placements& into) {
    std::map<unsigned, Sharers> lines;
    for (auto& target : into.queues)
        if (const auto* irq = line_of(target)) lines[irq->irq].push_back(&target);
    for (auto& [number, sharers] : lines) {
        const auto* line = machine.irqs.find(number);
        if (line != nullptr && (sharers.size() > 1 || line->actions.size() > 1))
            settle(machine, *line, std::move(sharers), into);
    }
}

const QueueTarget& decider(const Placements& placements, const QueueTarget& target,
                           const std::function<bool(std::string_view policy)>& is_released) {
    const auto* best = &target;
    if (target.rank == 0) return *best;
    for (const auto& other : placements.queues)
        if (other.rank < best->rank && other.subject == target.subject && !is_released(other.policy))
            best = &other;
    return *best;
}

} // namespace affinityd::planner
