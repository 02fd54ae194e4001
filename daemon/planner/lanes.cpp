// SPDX-License-Identifier: Apache-2.0
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

bool carries_data(const Vector& vector) { return irq::is_data(vector.kind); }

/// One interface whose queues are given to lanes.
struct Job {
    ResolvedPolicy& resolved;
    const Machine& machine;
    const Nic& nic;
    std::string device; ///< as the subjects name it
    bool is_port;       ///< one of several interfaces of the device
    Placements& into;
    std::vector<Vector> vectors;  ///< data vectors only
    std::vector<unsigned> queues; ///< distinct queue numbers, ascending
    /// Interrupts of which it is not known whose queues they serve, ascending: each counts as one more queue.
    std::vector<unsigned> unnumbered;
    // Once they are chosen, for all interfaces that share them:
    NicLanes shared;

    [[nodiscard]] const std::vector<Slot>& lanes() const { return shared.lanes; }
    /// How many lanes its interrupts are dealt to, if there are cores enough.
    [[nodiscard]] std::size_t places() const { return queues.size() + unnumbered.size(); }
    [[nodiscard]] std::size_t place_of(unsigned queue) const {
        const auto own = std::ranges::lower_bound(queues, queue);
        if (own != queues.end() && *own == queue) return static_cast<std::size_t>(own - queues.begin());
        // One that has no interrupt of its own is dealt to those that are there.
        return unnumbered.empty() ? queue % queues.size() : queues.size() + queue % unnumbered.size();
    }
    [[nodiscard]] std::size_t place_of(const Vector& vector) const {
        if (vector.queue) return place_of(*vector.queue);
        const auto own = std::ranges::lower_bound(unnumbered, vector.irq);
        return queues.size() + static_cast<std::size_t>(own - unnumbered.begin());
    }
    [[nodiscard]] std::size_t lane_of(unsigned queue) const { return place_of(queue) % lanes().size(); }
    [[nodiscard]] CpuSet interrupt_mask(std::size_t lane) const { return CpuSet{shared.interrupts[lane]}; }
    [[nodiscard]] std::string near(const Slot& lane) const;
    [[nodiscard]] Reason why(std::optional<unsigned> queue, std::size_t lane) const;
    void want(Subject subject, Setting wanted, Reason reason) const {
        into.queues.push_back(
            {std::move(subject), std::move(wanted), nic.name, resolved.policy->name, std::move(reason)});
    }
};

/// The interface that a lane is near to: this one, or another that shares it.
std::string Job::near(const Slot& lane) const {
    if (machine::near_cpus(machine, nic).intersects(lane.cpus)) return nic.name;
    for (const auto& name : shared.nics)
        if (const auto* other = machine.nic(name);
            other != nullptr && machine::near_cpus(machine, *other).intersects(lane.cpus))
            return name;
    return {};
}

/// A queue's interrupt, or the kernel thread that does its work, is on the queue's lane.
Reason Job::why(std::optional<unsigned> queue, std::size_t lane) const {
    const bool is_full = resolved.policy->model == policy::Model::full;
    const auto& own = lanes()[lane].cpus;
    const auto nearest = near(lanes()[lane]);
    const bool is_near_another = !nearest.empty() && nearest != nic.name;
    std::string where;
    if (!nearest.empty()) where = " near " + (is_near_another ? nearest : "it");
    if (is_full) where += is_near_another ? ", with the tasks that both serve" : ", with the tasks it serves";
    const bool is_apart = !own.contains(shared.interrupts[lane]);
    const auto beside =
        is_apart ? fmt::format("on CPU {}, beside its lane on core", shared.interrupts[lane]) : "on core";
    return {fmt::format("{}{}: {} of {} {} {}{}", is_full ? "full" : "irq", is_apart ? ", separate" : "",
                        queue ? fmt::format("queue {}", *queue) : "a queue", nic.name, beside, own.to_list(),
                        where),
            queue};
}

void count_queues(Job& job) {
    std::set<unsigned> numbers;
    for (const auto& vector : job.vectors) // ascending
        if (vector.queue)
            numbers.insert(*vector.queue);
        else
            job.unnumbered.push_back(vector.irq);
    // Interfaces without interrupts (veth) still have receive queues, and threads that do their work.
    if (job.vectors.empty())
        for (const auto& queue : job.nic.queues)
            if (queue.direction == Direction::rx) numbers.insert(queue.index);
    job.queues = {numbers.begin(), numbers.end()};
}

/// In turn.
CpuSet nth_cpu(const CpuSet& cpus, std::size_t n) {
    n %= cpus.count();
    for (const unsigned cpu : cpus)
        if (n-- == 0) return CpuSet{cpu};
    return cpus;
}

void add_interrupts(Job& job) {
    for (const auto& vector : job.vectors) {
        const auto* line = job.machine.irqs.find(vector.irq);
        if (line == nullptr || !line->requested || line->fixed) continue;
        const std::size_t place = job.place_of(vector);
        const std::size_t lane = place % job.lanes().size();
        CpuSet wanted = job.interrupt_mask(lane);
        // Two of unknown queues are on one CPU only where no sibling of its core is left.
        if (!vector.queue && job.resolved.policy->model == policy::Model::irq &&
            !job.resolved.policy->separate)
            wanted = nth_cpu(job.lanes()[lane].cpus, place / job.lanes().size());
        job.want(machine::irq_subject(job.nic, vector), wanted, job.why(vector.queue, lane));
        for (const int thread : line->threads)
            job.into.threads.insert_or_assign(
                thread, QueueThread{wanted, job.resolved.policy->name, job.why(vector.queue, lane)});
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

/// CPUs of the lanes that a queue has: its own, or several where there are more lanes than queues, or than
/// queues with interrupts.
CpuSet lane_cpus(const Job& job, unsigned queue, std::size_t queue_count, std::size_t lane_count) {
    CpuSet cpus;
    const std::size_t step = std::min(queue_count, job.places());
    for (std::size_t lane = job.lane_of(queue); lane < lane_count; lane += step)
        cpus |= job.lanes()[lane].cpus;
    return cpus;
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
    const auto count = [&](Direction direction) {
        return static_cast<std::size_t>(
            std::ranges::count(job.nic.queues, direction, &netdev::Queue::direction));
    };
    // More interrupts than queues are no reason for RPS; more tasks are, and a single receive queue is.
    auto lanes = job.lanes().size();
    if (job.resolved.policy->model == policy::Model::irq && count(Direction::rx) > 1)
        lanes = std::min(lanes, std::max(count(Direction::rx), count(Direction::tx)));
    for (const auto& queue : job.nic.queues) {
        if (!queue.steering) continue;
        const bool is_tx = queue.direction == Direction::tx;
        const std::size_t queues = count(queue.direction);
        CpuSet wanted;
        if (is_tx || lanes > queues) wanted = lane_cpus(job, queue.index, queues, lanes);
        const bool is_spread = !is_tx && !wanted.empty();
        Reason reason = is_tx ? "XPS: sent from the CPUs of its lane"
                              : "RPS off: it would carry packets away from the lane";
        if (is_spread)
            reason = fmt::format("RPS spreads its {} {} over {} cores", queues,
                                 queues == 1 ? "queue" : "queues", lanes);
        job.want(SteeringMask{job.device, queue.direction, queue.index, job.nic.name, job.nic.ifindex,
                              job.is_port, job.nic.folder},
                 std::move(wanted), std::move(reason));
        if (is_spread || (!is_tx && brings_flows(job))) add_flow_tables(job, queue, queues);
    }
}

/// Lanes of all interfaces in turn: eth0's first, eth1's first, eth0's second, ... Those of interfaces that
/// share theirs come once.
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

bool shares_device(const Machine& machine, const Nic& nic) {
    return !nic.device.empty() && std::ranges::count(machine.nics, nic.device, &Nic::device) > 1;
}

/// The interfaces of a group that have queues now.
struct Members {
    std::vector<Job> jobs;   ///< whose queues can be placed
    std::vector<Job> others; ///< whose queues are placed by another policy already
};

Members members_of(ResolvedPolicy& resolved, const Machine& machine, const Interfaces::Group& group,
                   const LaneLoad& load, Placements& into) {
    Members members;
    const auto& policy = resolved.policy->name;
    for (const auto* nic : group.nics) {
        Job job{resolved,
                machine,
                *nic,
                nic->device.empty() ? nic->name : nic->device,
                shares_device(machine, *nic),
                into};
        std::ranges::copy_if(machine.vectors_of(nic->name), std::back_inserter(job.vectors), carries_data);
        count_queues(job);
        if (load.placed.contains(nic->name))
            members.others.push_back(std::move(job));
        else if (job.places() == 0)
            into.problems.push_back({policy, nic->name,
                                     "it has no queue that could be placed now (is the link down?)",
                                     fmt::format("ip link set {} up", nic->name)});
        else
            members.jobs.push_back(std::move(job));
    }
    const bool is_full = resolved.policy->model == policy::Model::full;
    for (const auto& other : members.others)
        into.problems.push_back(
            {policy, other.nic.name,
             "its queues are already placed by policy " + load.placed.at(other.nic.name) +
                 (is_full && members.jobs.empty() ? ": affinity: full acts as process near it" : ""),
             "leave it out of nics in one of the two policies"});
    return members;
}

/// Reports interfaces that carry traffic far from the lanes they share.
void tell_of_spares(const ResolvedPolicy& resolved, const NicLanes& lanes, Placements& into) {
    for (const auto& name : lanes.nics)
        if (std::ranges::find(lanes.spares, name) == lanes.spares.end())
            into.problems.push_back({resolved.policy->name, name,
                                     "it carries the traffic now, but the policy may use no CPU near it: its "
                                     "tasks stay near an interface that is a spare",
                                     "add CPUs near it to cpus: affinityctl cpus nic:" + name});
}

/// More lanes than before, or fewer, or elsewhere. Where there are fewer than wanted, for want of cores, it
/// changes nothing how many are wanted beyond them.
bool has_changed(const NicLanes& before, const NicLanes& now) {
    const auto had = before.lanes.size();
    const bool is_number = before.wanted > had ? now.wanted < had : now.wanted != before.wanted;
    return is_number || before.candidates != now.candidates;
}

/// Receive queues that RPS can spread.
std::size_t rps_queues(const Nic& nic) {
    return static_cast<std::size_t>(std::ranges::count_if(nic.queues, [](const netdev::Queue& queue) {
        return queue.direction == Direction::rx && queue.steering;
    }));
}

/// As add_steering() has it: a worker whose lane no queue interrupts is served by RPS, or else it shares the
/// packets of another lane's queue.
std::vector<unsigned> arrival_cpus(const ResolvedPolicy& resolved, const NicLanes& lanes,
                                   const std::vector<Job>& jobs, std::size_t queues) {
    std::size_t spread = 0;
    for (const auto& job : jobs)
        spread = std::max(spread, rps_queues(job.nic));
    const bool is_spread = resolved.policy->steering && spread > 0 && lanes.lanes.size() > spread;
    std::vector<unsigned> cpus;
    for (std::size_t i = 0; i < lanes.lanes.size(); ++i)
        cpus.push_back(is_spread ? lanes.lanes[i].cpus.first() : lanes.interrupts[i % queues]);
    return cpus;
}

/// Lanes for these, as many as they serve tasks, else as many as they have queues.
/// `have_interrupts`: these queues are to interrupt them.
NicLanes lanes_for(ResolvedPolicy& resolved, const Interfaces& interfaces, const LaneGroup& group,
                   const std::vector<Job>& jobs, bool have_interrupts, LaneLoad& load) {
    const auto& machine = interfaces.machine();
    const unsigned tasks = group.interfaces.tasks;
    NicLanes lanes{.name = group.interfaces.nics.front()->name};
    lanes.is_guess = tasks == 0 && resolved.policy->model == policy::Model::full;
    std::vector<const Nic*> nics;
    std::size_t queues = 0;
    for (const auto& job : jobs) {
        nics.push_back(&job.nic);
        lanes.nics.push_back(job.nic.name);
        lanes.ids.push_back({job.nic.ifindex, job.nic.device});
        if (interfaces.is_spare(job.nic)) lanes.spares.push_back(job.nic.name);
        queues = std::max(queues, job.places());
    }
    const auto home = lane_home(resolved, interfaces, nics);
    lanes.candidates = home.first | home.then;
    lanes.wanted = tasks == 0 ? std::max<std::size_t>(1, queues) : tasks;
    // One receive queue whose interrupts alone are placed is spread over the cores near it (RPS).
    if (resolved.policy->model == policy::Model::irq && resolved.policy->steering && nics.size() == 1 &&
        rps_queues(*nics.front()) == 1)
        lanes.wanted =
            std::max(lanes.wanted, groups_of(machine.topology, policy::Bind::core, home.first).size());
    // More workers than there are cores near have work for others, too; interrupts alone have not.
    const bool may_be_far =
        tasks > groups_of(machine.topology, policy::Bind::core, lanes.candidates).size() &&
        resolved.policy->model == policy::Model::full;
    if (may_be_far) lanes.candidates |= home.rest;
    const LaneDemand demand{lanes.wanted,
                            have_interrupts ? queues : 0,
                            group.before->lanes,
                            has_changed(*group.before, lanes),
                            group.before->interrupts,
                            may_be_far};
    lanes.lanes = choose_lanes(resolved, machine, home, demand, load);
    lanes.near = home.near;
    if (std::ranges::any_of(lanes.lanes, [&](const Slot& lane) { return lane.cpus.intersects(home.others); }))
        lanes.near |= home.others;
    if (home.is_of_spares) tell_of_spares(resolved, lanes, jobs.front().into);
    if (have_interrupts) {
        lanes.interrupts = interrupt_cpus(resolved, machine, lanes.lanes, demand, load);
        lanes.arrivals = arrival_cpus(resolved, lanes, jobs, queues);
        lanes.queues = queues;
    } else {
        for (const auto& lane : lanes.lanes)
            load.add_tasks(lane.cpus.first());
    }
    return lanes;
}

void add_group(ResolvedPolicy& resolved, const Interfaces& interfaces, const LaneGroup& group, LaneLoad& load,
               Placements& into) {
    load.add_kept(group, -one_cpu); // it counts once: where it goes now
    auto [jobs, others] = members_of(resolved, interfaces.machine(), group.interfaces, load, into);
    if (!jobs.empty()) {
        const auto lanes = lanes_for(resolved, interfaces, group, jobs, true, load);
        for (auto& job : jobs) {
            job.shared = lanes;
            const auto before = into.queues.size();
            add_interrupts(job);
            add_napi_threads(job);
            add_steering(job);
            if (into.queues.size() > before) load.placed.emplace(job.nic.name, resolved.policy->name);
        }
        resolved.nics.push_back(lanes);
        for (const auto& job : jobs)
            std::ranges::move(interrupt_problems(resolved, interfaces.machine(), job.nic),
                              std::back_inserter(into.problems));
    } else if (!others.empty() && resolved.policy->model == policy::Model::full) {
        // Its tasks are near the interface all the same, each on a core of its own.
        resolved.nics.push_back(lanes_for(resolved, interfaces, group, others, false, load));
    }
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

void LaneLoad::add_kept(const LaneGroup& group, Weight amount) {
    for (const unsigned cpu : group.kept_work()) {
        expected.add({cpu}, amount);
        lanes.add({cpu}, amount);
    }
}

void add_lanes(ResolvedPolicy& resolved, const Interfaces& interfaces, const std::vector<LaneGroup>& groups,
               LaneLoad& load, Placements& into) {
    const auto& policy = *resolved.policy;
    if (policy.model != policy::Model::irq && policy.model != policy::Model::full) return;
    for (auto& name : interfaces.hollow(policy))
        into.problems.push_back(
            {policy.name, std::move(name),
             "nothing of hardware is under it: it has no ports, or only those of guests and containers, "
             "which are left alone unless they are named themselves",
             "name its ports in nics"});
    for (const auto& group : groups)
        add_group(resolved, interfaces, group, load, into);
    if (policy.model == policy::Model::full) resolved.all_lanes = in_turn(resolved.nics);
}

void tell_of_mixed(const topology::Topology& topology, Placements& into) {
    CpuSet of_workers; // as far as lanes are known to serve tasks
    for (const auto& resolved : into.policies)
        for (const auto& lanes : resolved.nics)
            if (resolved.policy->model == policy::Model::full && !lanes.is_guess)
                of_workers |= cores_of(topology, lanes.lanes);
    for (const auto& resolved : into.policies)
        for (const auto& lanes : resolved.nics) {
            if (!resolved.policy->separate) continue;
            const CpuSet own = cores_of(topology, lanes.lanes);
            std::size_t with_own = 0, with_others = 0;
            for (std::size_t i = 0; i < std::min(lanes.queues, lanes.interrupts.size()); ++i) {
                const bool is_own = own.contains(lanes.interrupts[i]);
                with_own += is_own ? 1U : 0U;
                with_others += !is_own && of_workers.contains(lanes.interrupts[i]) ? 1U : 0U;
            }
            const auto report = [&](std::size_t count, const char* where) {
                if (count > 0)
                    into.problems.push_back(
                        {resolved.policy->name, lanes.name,
                         fmt::format("separate: interrupts of {} of its {} lanes are on cores of workers{}",
                                     count, lanes.lanes.size(), where),
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
