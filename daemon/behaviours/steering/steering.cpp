// SPDX-License-Identifier: Apache-2.0
#include "behaviours/steering/steering.hpp"

#include "host/self.hpp"
#include "host/signals.hpp"
#include "inventory/process_files.hpp"
#include "inventory/process_scan.hpp"
#include "inventory/sockets.hpp"
#include "locality/locality.hpp"
#include "status/json.hpp"
#include "steer/lanes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <iterator>
#include <memory>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <sys/epoll.h>

namespace affinityd::behaviours {

namespace {

using planner::AtArrivals;
using planner::NotSteered;

using std::chrono::milliseconds;
constexpr std::array distances{milliseconds(10),   milliseconds(30),  milliseconds(50),
                               milliseconds(100),  milliseconds(200), milliseconds(400),
                               milliseconds(1000), milliseconds(2500)}; // looks after news
constexpr milliseconds shortest_between_looks{50};
constexpr std::chrono::seconds between_looks{5}, between_events{1}, between_trials{60}, fair_time{60},
    between_hurries{5}, between_moves{60}; // the last of one task
constexpr milliseconds slice{2};
constexpr std::size_t most_spaces = 256, most_spaces_of_user = 64; // namespaces with programs of their own
constexpr std::size_t most_addresses = 1024, most_addresses_of_user = 2048; // of a namespace; both of 4096
constexpr int most_hurries = 4;                                             // events that are heeded at once
constexpr std::chrono::hours between_records{1}, longest_between_records{24};
/// Bytes of a list of sockets, which begins with listeners: the first, and those after it.
constexpr std::size_t most_listed = 4U << 20, most_listed_again = 512U << 10;
constexpr std::uint64_t enough_taken = 100; ///< connections of an address, to judge shares by
constexpr double most_share = 2;            ///< times an equal one
constexpr std::uint64_t most_reads_of_policy = 1'000'000, most_reads_of_task = 64; ///< then each counts half
constexpr std::uint64_t enough_reads = 20; ///< of a policy; nothing is said of it before

/// Makes each count half. The sum of what is left.
template <class Key>
std::uint64_t halve(std::map<Key, std::uint64_t>& counts) {
    std::uint64_t sum = 0;
    for (auto& [key, count] : counts)
        sum += count /= 2;
    std::erase_if(counts, [](const auto& one) { return one.second == 0; });
    return sum;
}

/// The task that counts for a thread: itself, if it has a slot of its own.
const TaskId& task_of(const KnownProcess& process, int tid) {
    const auto* thread = process.threads.find(tid);
    return thread != nullptr && thread->seat.is_own ? thread->id : process.id;
}

} // namespace

Steering::Steering(Daemon& daemon)
    : shared_(daemon.shared()), tasks_(daemon.tasks()), events_(::epoll_create1(EPOLL_CLOEXEC)),
      kept_(steer::Kept::inherited()) {}

/// Null: its policy does nothing now.
const planner::ResolvedPolicy* Steering::resolved(const KnownProcess& process) const {
    const auto& policy = shared_.current->policy(process.policy);
    if (policy.model != policy::Model::full || shared_.releases.policy(policy.name)) return nullptr;
    const auto* resolved = shared_.current.placements().find(policy.name);
    return resolved != nullptr && resolved->active ? resolved : nullptr;
}

/// Null: it has ended, or is under no policy.
const KnownProcess* Steering::find(const TaskId& process) const {
    const auto* known = tasks_.table().find(process.tid);
    return known != nullptr && known->id == process ? known : nullptr;
}

bool Steering::wants_counts() const {
    return std::ranges::any_of(shared_.current.placements().policies, [&](const auto& resolved) {
        return resolved.active && !shared_.releases.policy(resolved.policy->name) &&
               (resolved.policy->model == policy::Model::full || !resolved.policy->allow_join.empty());
    });
}

void Steering::placed(const KnownProcess& process) {
    if (!process.settling && moves(process)) { // it may have got its slot
        if (movers_.contains(process.id)) add_news(process.id);
        for (const auto& thread : process.threads)
            if (thread.seat.is_own && movers_.contains(thread.id)) add_news(thread.id);
    }
    space_of_.erase(process.id); // it may have got a namespace of its own before it executed the program
    if (!shared_.acts() || !steers(process)) return;
    hurry();
}

/// Has look() come as soon as it may, and some times more after that.
void Steering::hurry() {
    looks_ = distances.size();
    next_look_ =
        std::min(next_look_, std::max(Clock::now() + distances.front(), last_look_ + shortest_between_looks));
}

/// In a thread, as the kernel takes long to check the programs.
Result<steer::Reads> Steering::load() {
    auto reads = steer::Reads::open(shared_.root, {.with_takers = true, .kept = &kept_});
    if (reads || kept_.is_empty()) return reads;
    kept_.remove_all(); // tables of another version
    return steer::Reads::open(shared_.root, {.with_takers = true, .kept = &kept_});
}

bool Steering::is_loading() const {
    return loading_.valid() && loading_.wait_for(milliseconds(0)) == std::future_status::timeout;
}

bool Steering::begin_counting() {
    if (!loading_.valid()) loading_ = host::run_aside([this] { return load(); });
    next_look_ = Clock::now() + distances.front();
    if (is_loading()) return false;
    auto reads = loading_.get();
    if (!reads) next_look_ = Clock::now() + between_trials;
    const auto why = reads ? "" : reads.error().to_string();
    if (std::exchange(why_not_, why) != why) {
        if (!reads) shared_.log.warn("nothing is steered or counted: " + why);
        shared_.want_pass(); // can_steer() is another
    }
    if (!reads) return false;
    reads_ = std::move(*reads);
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(events_.get(), EPOLL_CTL_ADD, reads_->event_fd(), &event);
    return true;
}

void Steering::end_all() {
    for (auto& [name, space] : spaces_)
        if (space.lanes) space.lanes->end();
    spaces_.clear();
    round_.reset();
    space_of_.clear();
    accepts_.clear();
    loading_ = {};
    reads_.reset();
    why_not_.clear();
    kept_.remove_all();
}

void Steering::readable() {
    if (!reads_) return;
    auto opened = reads_->take_events();
    if (opened.processes.empty()) return;
    opened_.is_paused |= opened.is_paused;
    opened_.processes.merge(opened.processes);
    const auto now = Clock::now();
    hurried_ = std::max(hurried_, now - most_hurries * between_hurries);
    if (hurried_ + between_hurries <= now) {
        hurried_ += between_hurries;
        return hurry();
    }
    next_look_ = std::min(next_look_, std::max(now + distances.front(), last_look_ + between_events));
}

void Steering::tick() {
    const auto now = Clock::now();
    next_look_ = Clock::time_point::max();
    if (!shared_.acts() || !shared_.root.is_live() || !shared_.current.world) return;
    if (!wants_counts() && !is_loading()) return end_all();
    if (!reads_ && !begin_counting()) return;
    next_look_ = Clock::time_point::max();
    if (!round_) begin_round();
    while (!round_->spaces.empty()) {
        const auto begun = Clock::now();
        const bool is_long = look_at_next();
        if (round_->spaces.empty()) break;
        const auto end = Clock::now();
        if (!is_long && end < now + slice) continue;
        next_look_ = end + (is_long ? 3 * (end - begun) : Clock::duration(0)); // others have their turn
        return;
    }
    end_round();
}

void Steering::begin_round() {
    const auto now = Clock::now();
    round_ = Round{};
    last_look_ = now;
    auto opened = reads_->take_events();
    opened.is_paused |= opened_.is_paused;
    opened.processes.merge(opened_.processes);
    if (opened.is_paused) paused_ = now;
    round_->opened = std::move(opened);
    opened_ = {};
    if (locality::ReadCounts seen; reads_->take(seen)) note_reads(seen);
    accepts_.clear();
    for (const auto& taker : reads_->takers()) {
        round_->takers.emplace(taker.listener, taker);
        accepts_[{taker.process, taker.thread}] += taker.taken;
    }
    round_->is_whole = round_->opened.is_paused || now >= whole_;
    round_->spaces = steered_processes();
    for (auto space = spaces_.begin(); space != spaces_.end();) {
        // A server that is restarted finds the program of the former one.
        const bool is_over = round_->is_whole && !round_->spaces.contains(space->first);
        if (is_over && space->second.lanes) space->second.lanes->end();
        space = is_over ? spaces_.erase(space) : std::next(space);
    }
    if (looks_ > 0) --looks_;
}

/// True: a program was loaded for it, which takes long.
bool Steering::look_at_next() {
    const auto its = round_->spaces.extract(round_->spaces.begin());
    auto& space = spaces_[its.key()];
    Processes processes;
    for (const auto& id : its.mapped())
        if (const auto* process = find(id); process != nullptr && steers(*process))
            processes.push_back(process);
    const auto has_opened = [&](const auto* process) {
        return round_->opened.processes.contains(process->id.tid);
    };
    if (std::ranges::any_of(processes, has_opened)) space.looks = distances.size();
    if (processes.empty() || (space.looks == 0 && !round_->is_whole)) return false;
    if (space.looks > 0) --space.looks;
    const bool was_served = space.lanes.has_value();
    look_at(its.key(), space, processes, round_->takers);
    return !was_served && space.lanes;
}

void Steering::end_round() {
    const auto now = Clock::now();
    bool has_datagrams = false, has_unread = false;
    for (const auto& [name, space] : spaces_)
        for (const auto& [cookie, seen] : space.seen) {
            has_datagrams |= seen.is_datagram() && seen.cpu;
            has_unread |= seen.is_datagram() && seen.why == NotSteered::not_seen && !seen.cpu;
        }
    reads_->note_readers(has_unread);
    if (round_->is_whole)
        whole_ = last_look_ + (has_datagrams || has_unread ? between_events : between_looks);
    next_look_ = std::min(next_look_, std::max(whole_, now));
    if (looks_ > 0) next_look_ = std::min(next_look_, now + distances.at(distances.size() - looks_));
    if (!opened_.processes.empty()) next_look_ = std::min(next_look_, last_look_ + between_events);
    round_.reset();
    const auto is_news = [this](int pid) { return !tasks_.table().find(pid)->takes_none; };
    if (std::ranges::any_of(without_connections(), is_news)) shared_.work.want(Work::Urgency::later);
    if (started_.empty()) return;
    for (const int pid : std::exchange(started_, {}))
        tasks_.has_started(pid);
    next_look_ = Clock::now(); // most have their places now
}

void Steering::note_reads(const locality::ReadCounts& found) {
    const locality::Nearness near(shared_.current->machine().topology);
    for (const auto& count : found.counts) {
        const auto* process = tasks_.table().find(count.pid);
        if (process == nullptr) continue; // it has ended, or left its policy
        const auto& policy = shared_.current->policy(process->policy).name;
        auto& reader = readers_[count.pid];
        if (reader.id != process->id || reader.policy != policy) reader = {process->id, policy, {}, {}, 0};
        reader.comm = process->comm;
        reader.reads[{count.network_space, count.device, count.napi, count.arrival, count.reader}] +=
            count.reads;
        reader.all += count.reads;
        if (count.arrival) {
            auto& sum = read_sums_[policy];
            sum.reads += count.reads;
            if (near.is_same(locality::NearLevel::core, *count.arrival, count.reader))
                sum.local += count.reads;
        }
        if (!count.arrival || !moves(*process)) continue;
        const auto& task = task_of(*process, count.thread);
        auto& mover = movers_[task];
        mover.process = process->id;
        mover.arrivals[*count.arrival] += count.reads;
        mover.reads += count.reads;
        while (mover.reads > most_reads_of_task)
            mover.reads = halve(mover.arrivals);
        add_news(task);
    }
    std::map<std::string, std::uint64_t> sums;
    for (const auto& [pid, reader] : readers_)
        sums[reader.policy] += reader.all;
    for (auto& [pid, reader] : readers_)
        if (sums[reader.policy] > most_reads_of_policy) reader.all = halve(reader.reads);
}

/// For its processes as they are now.
locality::ReadCounts Steering::counts_of(const std::string& policy) const {
    locality::ReadCounts found;
    for (const auto& [pid, reader] : readers_) {
        if (reader.policy != policy || find(reader.id) == nullptr) continue;
        found.names.emplace(pid, reader.comm);
        for (const auto& [flow, reads] : reader.reads)
            found.counts.push_back({.pid = pid,
                                    .network_space = flow.network_space,
                                    .device = flow.device,
                                    .napi = flow.napi,
                                    .arrival = flow.arrival,
                                    .reader = flow.reader,
                                    .reads = reads});
    }
    return found;
}

/// `only`: a process; 0: all of them. No value: too few reads are known.
std::optional<status::LocalStatus> Steering::local(const locality::ReadCounts& counts, int only) const {
    const locality::Nearness near(shared_.current->machine().topology);
    const auto all =
        locality::figures_of(counts, near, [only](int pid) { return only == 0 || pid == only; }).total;
    if (all.reads - all.unknown < (only == 0 ? enough_reads : 1)) return std::nullopt;
    return status::LocalStatus{all.reads, all.unknown, all.same, all.chance};
}

std::optional<state::MeasurementRecord> Steering::take_record() {
    const auto now = Clock::now();
    for (const auto& resolved : shared_.current.placements().policies) {
        const auto& name = resolved.policy->name;
        auto& last = records_[name];
        if (now - last.when < between_records) continue;
        const auto figures = local(counts_of(name), 0);
        const bool is_late = now - last.when >= longest_between_records;
        if (!figures || (!is_late && std::abs(figures->same.core - last.core) < 0.05)) continue;
        last = {now, figures->same.core};
        state::MeasurementRecord record;
        record.time = std::time(nullptr);
        record.kind = "locality";
        record.outcome = "done";
        record.model = to_string(resolved.policy->model);
        record.policies = name;
        record.reason = status::to_string(*figures);
        record.detail = status::to_text(*figures);
        return record;
    }
    return std::nullopt;
}

// Tasks that go to where their packets arrive.

bool Steering::moves(const KnownProcess& process) const {
    return shared_.current->policy(process.policy).steer == policy::Steer::tasks && !process.is_elsewhere &&
           !shared_.releases.process(process.id) && resolved(process) != nullptr;
}

void Steering::add_news(const TaskId& task) {
    news_.insert(task);
    if (!std::exchange(is_deciding_, true)) shared_.work.add(decide_news());
}

Slices Steering::decide_news() {
    while (!news_.empty()) {
        const auto task = *news_.begin();
        news_.erase(news_.begin());
        if (const auto mover = movers_.find(task); mover != movers_.end()) decide(task, mover->second);
        co_yield pause;
    }
    is_deciding_ = false;
}

void Steering::decide(const TaskId& task, Mover& mover) {
    const auto* process = find(mover.process);
    if (process == nullptr || process->settling || !moves(*process)) return;
    auto& assignments = tasks_.placer().assignments();
    const auto slot = planner::slot_at_arrivals(*resolved(*process), shared_.current.placements(),
                                                assignments, task, mover.arrivals);
    mover.state = slot.state;
    const auto now = Clock::now();
    if (!slot.move || now < mover.movable) return;
    mover.movable = now + between_moves;
    assignments.move(task, slot.move->table, slot.move->from, slot.move->to);
    mover.state = AtArrivals::here;
    tasks_.process_changed(process->id.tid);
}

/// Policies that have all their listeners where another program steers can be steered nowhere.
void Steering::begin_pass() {
    machine::Machine::Unsteered unsteered{.all = !why_not_.empty(), .owners = {}};
    for (const auto& [name, space] : spaces_)
        if (!space.lanes && !space.trouble.empty())
            unsteered.owners.insert(space.policies.begin(), space.policies.end());
    for (const auto& [name, space] : spaces_)
        for (const auto& policy : space.policies)
            if (space.lanes) unsteered.owners.erase(policy);
    shared_.current->use_steering(std::move(unsteered));
}

Slices Steering::after_tasks() {
    const auto none = without_connections();
    for (auto& [pid, process] : tasks_.table().processes())
        process.takes_none = none.contains(pid);
    co_return;
}

Slices Steering::end_pass() {
    std::erase_if(readers_, [this](const auto& one) { return find(one.second.id) == nullptr; });
    std::erase_if(space_of_, [this](const auto& one) { return find(one.first) == nullptr; });
    std::erase_if(movers_, [this](const auto& one) {
        const auto* process = find(one.second.process);
        if (process == nullptr || !moves(*process)) return true;
        if (one.first == process->id) return false;
        const auto* thread = process->threads.find(one.first.tid);
        return thread == nullptr || thread->id != one.first;
    });
    if (reads_ && shared_.acts()) { // of a former daemon, and no process here asks for it
        const auto processes = steered_processes();
        for (const auto space : kept_.spaces())
            if (!processes.contains(space) && !spaces_.contains(space))
                steer::Lanes::drop(space, *reads_, kept_);
    }
    // A policy has come or gone.
    if (next_look_ == Clock::time_point::max() || !wants_counts()) next_look_ = Clock::now();
    // A single one with each pass: the disk may be slow.
    if (auto record = take_record()) shared_.keep(std::move(*record));
    co_return;
}

// Listeners that get what arrives on their workers' lanes.

bool Steering::steers(const KnownProcess& process) const {
    const auto steer = shared_.current->policy(process.policy).steer;
    return (steer == policy::Steer::automatic || steer == policy::Steer::accept) &&
           resolved(process) != nullptr;
}

/// By network namespace. The kernel marks what they open from now on.
std::map<std::uint64_t, std::vector<TaskId>> Steering::steered_processes() {
    std::map<std::uint64_t, std::vector<TaskId>> processes;
    std::set<int> pids;
    for (const auto& [pid, process] : tasks_.table().processes()) {
        if (!steers(process)) continue;
        auto [space, is_new] = space_of_.try_emplace(process.id);
        if (is_new) space->second = inventory::name_space(shared_.root, std::to_string(pid), "net");
        if (is_new && space->second != 0) spaces_[space->second].looks = distances.size();
        if (space->second != 0) processes[space->second].push_back(process.id);
        pids.insert(pid);
    }
    reads_->mark_listeners_of(pids);
    return processes;
}

/// `trouble` is told once in the log, and by status as long as it lasts; "": there is none.
void Steering::tell(Space& space, std::string trouble) {
    if (!trouble.empty() && trouble != space.trouble) shared_.log.warn(trouble);
    if (trouble.empty() != space.trouble.empty()) shared_.want_pass(); // `bind: core` is another
    space.trouble = std::move(trouble);
}

/// As many namespaces as there is memory for, and some of each user.
bool Steering::has_room(std::uint64_t name, Space& space, int process) const {
    space.owner = shared_.root.proc().owner(std::to_string(process));
    std::size_t all = 0, its = 0;
    for (const auto& [other, one] : spaces_) {
        if (!one.lanes || other == name) continue;
        ++all;
        if (space.owner != 0 && one.owner == space.owner) ++its;
    }
    return all < most_spaces && its < most_spaces_of_user;
}

/// The tables of addresses are for all namespaces: neither one nor a user may fill them.
bool Steering::is_in_share(const Space& space) const {
    std::size_t sum = 0;
    for (const auto& [name, one] : spaces_)
        if (space.owner != 0U && one.owner == space.owner) sum += one.addresses;
    return space.addresses <= most_addresses && sum <= most_addresses_of_user;
}

/// Loads a program for a namespace that has listeners. False: it is not steered.
bool Steering::begin(std::uint64_t name, Space& space, int process) {
    const auto now = Clock::now();
    if (std::ranges::none_of(space.scans, [](const auto& one) { return one.second.has_listeners; }))
        return false;
    if (now < space.retry) return false;
    space.is_left_out = !has_room(name, space, process);
    if (space.is_left_out) return false;
    // The kernel takes a moment to remove the program of a daemon that was killed.
    const bool is_first = space.retry == Clock::time_point{};
    space.retry = is_first ? now : now + between_trials;
    auto lanes = steer::Lanes::open(shared_.root, process, name, *reads_, kept_);
    if (!lanes) {
        if (!is_first)
            tell(space, fmt::format("listeners in network namespace {} are not steered: {}", name,
                                    lanes.error().to_string()));
        return false;
    }
    space.lanes = std::move(*lanes);
    return true;
}

void Steering::look_at(std::uint64_t name, Space& space, const Processes& processes, const Takers& takers) {
    mark(name, space, processes);
    space.policies.clear();
    for (const auto* process : processes)
        space.policies.insert(shared_.current->policy(process->policy).name);
    if (!space.lanes && !begin(name, space, processes.front()->id.tid)) return;
    std::vector<int> pids;
    for (const auto* process : processes)
        pids.push_back(process->id.tid);
    auto listeners = space.lanes->put_listeners(pids);
    if (!listeners)
        return tell(space, fmt::format("listeners in network namespace {} are steered as before: {}", name,
                                       listeners.error().to_string()));
    tell(space, "");
    find_waiting(space, *listeners);
    judge_all(space, *listeners, takers);
    note_started(space);
    weigh(space, takers);
    if (round_->opened.is_paused) space.listed.clear();
    auto wanted = choose(pids.front(), space, listeners->size());
    // After a restart workers have no places yet, or were not seen to wait: what the former daemon has set
    // stays until they have their places, and for some looks until all have lanes.
    const bool is_settling =
        space.lanes->is_adopted() && std::ranges::any_of(space.seen, [&](const auto& one) {
            const auto why = one.second.why;
            const bool may_change = planner::is_undecided(why) || why == NotSteered::no_lane;
            return !one.second.cpu && (why == NotSteered::settling || (may_change && space.looks > 0));
        });
    const bool is_other = wanted != space.in_force || space.lanes->is_adopted();
    if ((is_other && !is_settling) || round_->opened.is_paused) {
        if (auto placed = space.lanes->set(wanted, pids)) {
            listeners = std::move(*placed);
        } else {
            space.no_room = placed.error().to_string();
            for (auto& [cookie, seen] : space.seen)
                if (seen.cpu) seen.leave_alone(NotSteered::too_many);
            wanted.clear();
        }
        space.in_force = std::move(wanted);
    }
    // A listener that was refused is tried again by each look.
    for (const auto& [cookie, listener] : *listeners)
        if (const auto found = space.seen.find(cookie); listener.is_refused && found != space.seen.end())
            found->second.leave_alone(NotSteered::refused);
    if (spread_workers(space)) hurry();
}

/// The kernel tells of listeners that a known process opens; others come with descriptors from elsewhere, and
/// of sockets of UDP it tells nothing. So each look goes through the descriptors of one process.
void Steering::mark(std::uint64_t name, Space& space, const Processes& processes) {
    if (space.lanes && !space.lanes->is_attached()) { // it has ended, and this one has its number
        space.lanes->end();
        space = {};
        space.looks = distances.size();
    }
    space.turn = (space.turn + 1) % processes.size();
    std::map<TaskId, Scans> scans;
    for (const auto* process : processes) {
        auto& its = scans[process->id] = std::move(space.scans[process->id]);
        if (round_->opened.processes.contains(process->id.tid)) its.number = 0;
        its.is_due = its.number < distances.size() || process == processes[space.turn];
        if (!its.is_due) continue;
        const bool datagrams = resolved(*process)->policy->steer == policy::Steer::accept;
        auto found = steer::Lanes::mark(*reads_, process->id.tid, name, datagrams);
        if (!found) continue; // it has ended, or the next look tries again
        ++its.number;
        its.has_listeners = !found->empty();
        std::erase_if(*found, [](const auto& one) { return one.second.at.protocol == steer::Protocol::tcp; });
        its.datagrams = std::move(*found);
    }
    space.scans = std::move(scans);
}

/// Which threads wait on which listeners, so that those are steered from their first connection.
void Steering::find_waiting(Space& space, const steer::Listeners& listeners) const {
    std::set<std::uint64_t> inodes;
    for (const auto& [cookie, listener] : listeners)
        if (listener.at.protocol == steer::Protocol::tcp) inodes.insert(listener.inode);
    std::map<std::uint64_t, int> holders;
    for (auto& [process, its] : space.scans) {
        if (its.is_due && its.has_listeners)
            its.use = inventory::read_listener_use(shared_.root, process.tid, inodes)
                          .value_or(inventory::ListenerUse{});
        for (const auto& [inode, descriptor] : its.use.held)
            ++holders[inode];
    }
    space.waiting.clear();
    for (const auto& [process, its] : space.scans)
        for (const auto& wait : its.use.waits)
            if (wait.is_sure || holders[wait.listener] == 1)
                space.waiting.emplace(wait.listener, Server{process.tid, wait.thread});
}

bool Steering::still_holds(const Space& space, int pid, std::uint64_t inode) const {
    const auto* process = tasks_.table().find(pid);
    const auto scans = process == nullptr ? space.scans.end() : space.scans.find(process->id);
    if (scans == space.scans.end()) return false;
    const auto held = scans->second.use.held.find(inode);
    return held != scans->second.use.held.end() &&
           inventory::holds_socket(shared_.root, pid, held->second, inode);
}

/// The threads that take connections from a listener: those that were counted; before that, those that wait
/// on it. A server's former workers count no more, as they have closed it.
std::vector<Steering::Server> Steering::servers(const Space& space, std::uint64_t cookie,
                                                const steer::Listener& listener, const Takers& takers) const {
    std::vector<Server> waiting, counted;
    std::map<int, bool> holders;
    const auto [first, last] = space.waiting.equal_range(listener.inode);
    for (const auto& [inode, server] : std::ranges::subrange(first, last))
        waiting.push_back(server), holders[server.process];
    const auto [begin, end] = takers.equal_range(cookie);
    for (const auto& [listens, taker] : std::ranges::subrange(begin, end))
        if (const auto* process = tasks_.table().find(taker.process); process != nullptr && steers(*process))
            counted.push_back({taker.process, taker.thread}), holders[taker.process];
    if (holders.size() > 1 && space.numbers.at(listener.at) > 1) {
        for (auto& [pid, is_holder] : holders)
            is_holder = still_holds(space, pid, listener.inode);
        const auto has_closed = [&](const Server& server) { return !holders[server.process]; };
        std::erase_if(waiting, has_closed);
        if (!waiting.empty() || !std::ranges::all_of(counted, has_closed)) std::erase_if(counted, has_closed);
    }
    return counted.empty() ? waiting : counted;
}

/// Where its tasks' packets arrive, if that is the same CPU for all of them.
Steering::Seen Steering::judge(const Space& space, std::uint64_t cookie, const steer::Listener& listener,
                               const Takers& takers) const {
    Seen seen{.at = listener.at, .is_dual = listener.is_dual};
    for (const auto& server : servers(space, cookie, listener, takers)) {
        const auto* process = tasks_.table().find(server.process);
        if (process == nullptr || !steers(*process)) continue;
        const auto* its = resolved(*process);
        const auto& worker = task_of(*process, server.thread);
        std::optional<unsigned> cpu;
        auto why = NotSteered::settling;
        if (shared_.releases.process(process->id)) {
            why = NotSteered::released;
        } else if (!process->settling) {
            cpu = planner::arrival_cpu(*its, tasks_.placer().assignments(), worker);
            if (!cpu) why = planner::why_no_arrival(*its);
        }
        if (seen.policy.empty())
            seen = {its->policy->name, listener.at, listener.is_dual, worker, process->id.tid, cpu, why};
        else if (cpu != seen.cpu)
            seen.leave_alone(NotSteered::shared);
    }
    if (listener.has_program) seen.leave_alone(NotSteered::own_program);
    if (listener.has_device) seen.leave_alone(NotSteered::bound_device);
    return seen;
}

void Steering::judge_all(Space& space, const steer::Listeners& listeners, const Takers& takers) {
    space.seen.clear();
    space.numbers.clear();
    for (const auto& [cookie, listener] : listeners)
        ++space.numbers[listener.at];
    for (const auto& [process, scans] : space.scans)
        for (const auto& [cookie, socket] : scans.datagrams)
            if (!listeners.contains(cookie)) ++space.numbers[socket.at];
    for (const auto& [cookie, listener] : listeners)
        space.seen.emplace(cookie, judge(space, cookie, listener, takers));
    // A socket of UDP belongs to the process that has it open until it is known which task reads from it.
    for (const auto& [process, scans] : space.scans)
        for (const auto& [cookie, socket] : scans.datagrams) {
            auto& seen = space.seen.try_emplace(cookie, judge(space, cookie, socket, takers)).first->second;
            const auto& policy = *resolved(*find(process))->policy;
            if (seen.policy.empty()) seen.policy = policy.name, seen.process = process.tid;
            if (policy.steer != policy::Steer::accept)
                seen.leave_alone(NotSteered::datagrams);
            else if (seen.why == NotSteered::not_seen && !reads_->has_other_protocols())
                seen.leave_alone(NotSteered::no_event);
        }
}

/// A worker that takes connections from a listener of its own has started: it needs its place now.
void Steering::note_started(const Space& space) {
    for (const auto& [cookie, seen] : space.seen)
        if (!seen.cpu && seen.why == NotSteered::settling && space.numbers.at(seen.at) > 1)
            started_.insert(seen.process);
}

/// Once a minute: a worker that got more than twice its share passes on what exceeds that.
void Steering::weigh(Space& space, const Takers& takers) {
    for (auto& [cookie, taken] : space.taken)
        taken.now = 0;
    for (const auto& [cookie, taker] : takers)
        if (const auto seen = space.seen.find(cookie);
            seen != space.seen.end() && !seen->second.is_datagram())
            space.taken[cookie].now += taker.taken;
    std::erase_if(space.taken, [&](const auto& one) { return !space.seen.contains(one.first); });
    const auto now = Clock::now();
    if (now < space.minute + fair_time) return;
    const bool is_begun = std::exchange(space.minute, now) != Clock::time_point{};
    for (const auto& service : space.in_force) {
        if (service.is_dual) continue; // has the slots of another
        std::uint64_t all = 0;
        for (const auto cookie : service.slots)
            if (const auto& its = space.taken[cookie]; its.now > its.before) all += its.now - its.before;
        for (const auto cookie : service.slots) {
            auto& its = space.taken[cookie];
            if (!is_begun || all < enough_taken * service.slots.size() || its.now < its.before) continue;
            const double share = static_cast<double>(its.now - its.before) / static_cast<double>(all);
            const double natural = share / (1 - its.pass_on);
            const double most = most_share / static_cast<double>(service.slots.size());
            its.pass_on = natural > most ? std::min(1 - most / natural, 0.9) : 0;
        }
    }
    for (auto& [cookie, taken] : space.taken)
        taken.before = taken.now;
}

/// Lists what takes connections or datagrams on these ports. Once listeners have been read, the kernel notes
/// new ones. When they were read, in ns of the monotonic clock; 0: the list was cut, and what was known
/// before counts, too; no value: it was cut the first time, so too little is known.
std::optional<std::uint64_t> Steering::list_others(int process, Space& space,
                                                   const std::set<Port>& ports) const {
    const auto now = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
    const bool is_first = !std::ranges::includes(space.listed, ports);
    std::map<steer::Address, std::size_t> found;
    bool is_cut = false;
    for (const auto& file : inventory::net_files) {
        if (std::ranges::none_of(ports, [&](const auto& port) { return port.first == file.protocol; }))
            continue;
        const auto take = [&](const inventory::LocalSocket& socket) {
            if (socket.listens() && ports.contains({file.protocol, socket.port}))
                ++found[{socket.local, socket.port, file.protocol}];
            return socket.listens() || file.protocol == steer::Protocol::udp;
        };
        // The kernel searches a list of UDP from its start for each part that is read.
        const bool is_long = is_first && file.protocol == steer::Protocol::tcp;
        const auto is_whole = inventory::read_first_sockets(shared_.root, std::to_string(process) + "/", file,
                                                            is_long ? most_listed : most_listed_again, take);
        is_cut |= !is_whole.value_or(false);
    }
    if (is_cut) found.merge(space.others);
    space.others = std::move(found);
    if (is_cut && is_first) return std::nullopt;
    space.listed = ports;
    return is_cut ? 0 : static_cast<std::uint64_t>(now);
}

/// Deals the CPUs where packets arrive out to the listeners of one address. No slots: all are left alone.
steer::Service Steering::deal_out(const Group& group, Space& space) {
    steer::Service service{.at = group.front()->second.at};
    const auto known =
        std::ranges::find_if(group, [](const auto* one) { return !one->second.policy.empty(); });
    if (known == group.end()) return service; // a program's that is under no policy, or none has taken yet
    std::map<unsigned, std::vector<std::uint64_t>> of_cpus;
    for (auto* one : group) {
        auto& [cookie, seen] = *one;
        // Listeners that no task was seen to take from belong to the policy of the others.
        if (seen.policy.empty()) seen.policy = (*known)->second.policy;
        if (group.size() == 1 && seen.cpu) seen.leave_alone(NotSteered::single);
        if (seen.cpu) of_cpus[*seen.cpu].push_back(cookie);
    }
    for (const auto& [cpu, cookies] : of_cpus) {
        steer::Service::Lane lane{static_cast<unsigned>(service.slots.size()),
                                  static_cast<unsigned>(cookies.size()), 0};
        for (const auto cookie : cookies) {
            service.slots.push_back(cookie);
            lane.pass_on = std::max(lane.pass_on, space.taken[cookie].pass_on);
        }
        service.lanes.emplace(cpu, lane);
    }
    return service;
}

/// How connections and datagrams for each address are to be handed out. `process`: one of the namespace.
/// Others that are more specific are left alone, as the kernel prefers an exact address, and IPv4's own.
std::vector<steer::Service> Steering::choose(int process, Space& space, std::size_t listeners) {
    std::map<steer::Address, Group> groups;
    for (auto& one : space.seen)
        groups[one.second.at].push_back(&one);
    std::set<Port> ports, whole; // of which sockets are listed; of which all addresses are steered
    std::vector<steer::Service> found;
    for (const auto& [at, group] : groups) {
        auto service = deal_out(group, space);
        if (service.slots.empty()) continue;
        if (at.local.is_any()) whole.insert({at.protocol, at.port});
        if (at.local.is_any() || at.protocol == steer::Protocol::udp) ports.insert({at.protocol, at.port});
        found.push_back(std::move(service));
    }
    const auto listed = list_others(process, space, ports);
    std::set<steer::Address> others;
    for (const auto& [at, count] : space.others)
        if (whole.contains({at.protocol, at.port})) others.insert(at);
    for (const auto& [at, group] : groups)
        if (whole.contains({at.protocol, at.port})) others.insert(at);
    std::vector<steer::Service> duals;
    for (auto& service : found) {
        // The kernel's choice among all of them gives the others their part.
        auto all = groups.at(service.at).size();
        if (service.at.protocol == steer::Protocol::udp) all = std::max(all, space.others[service.at]);
        service.pass_on = 1 - static_cast<double>(service.slots.size()) / static_cast<double>(all);
        if (!service.at.local.is_any() || !groups.at(service.at).front()->second.is_dual) continue;
        auto dual = service;
        dual.at.local = inventory::IpAddress::from_ipv4({});
        dual.is_dual = true;
        if (!others.contains(dual.at)) duals.push_back(std::move(dual));
    }
    std::ranges::move(duals, std::back_inserter(found));
    // An exact address that is steered, too, is found before all of them.
    for (const auto& service : found)
        others.erase(service.at);
    space.addresses = std::max(found.size(), others.size());
    const bool has_share = is_in_share(space);
    const bool is_known =
        listed && space.lanes->leave(has_share ? others : std::set<steer::Address>(), *listed);
    const bool is_cut = listeners >= steer_most_listeners || !has_share;
    if (!has_share)
        space.no_room = fmt::format("there is no room for all addresses of other programs: at most {} "
                                    "addresses of a namespace are told apart, and {} of one user",
                                    most_addresses, most_addresses_of_user);
    else if (is_cut)
        space.no_room =
            fmt::format("the map of listeners is full, with {}", static_cast<int>(steer_most_listeners));
    else if (!listed)
        space.no_room = "not all sockets of other programs could be listed";
    else
        space.no_room = is_known ? "" : "there is no room for all addresses of other programs";
    if (!space.no_room.empty()) { // one that is not known could lose its connections
        const auto is_meant = [&](const steer::Address& at) { return is_cut || at.local.is_any(); };
        std::erase_if(found, [&](const auto& service) { return is_meant(service.at); });
        for (auto& [cookie, seen] : space.seen)
            if (seen.cpu && is_meant(seen.at)) seen.leave_alone(NotSteered::too_many);
    }
    std::ranges::sort(found, {}, &steer::Service::at);
    return found;
}

/// True: workers change over to lanes that have none.
bool Steering::spread_workers(const Space& space) {
    auto& assignments = tasks_.placer().assignments();
    bool is_moved = false;
    std::map<std::pair<std::string, Port>, std::map<TaskId, int>> servers;
    std::set<std::pair<std::string, Port>> unknown;
    for (const auto& [cookie, seen] : space.seen) {
        const Port port{seen.at.protocol, seen.at.port};
        if (seen.cpu)
            servers[{seen.policy, port}].emplace(seen.worker, seen.process);
        else if (planner::is_undecided(seen.why))
            unknown.insert({seen.policy, port});
    }
    for (const auto& [server, workers] : servers) {
        const auto* resolved = shared_.current.placements().find(server.first);
        if (resolved == nullptr || unknown.contains(server)) continue;
        std::vector<TaskId> ids;
        for (const auto& [worker, process] : workers)
            ids.push_back(worker);
        for (const auto& move :
             planner::spread_workers(*resolved, shared_.current.placements(), assignments, ids)) {
            assignments.move(move.worker, move.table, move.from, move.to);
            tasks_.process_changed(workers.at(move.worker));
            is_moved = true;
        }
    }
    return is_moved;
}

bool Steering::holds(const TaskId& task) const {
    if (const auto mover = movers_.find(task);
        mover != movers_.end() && mover->second.state == AtArrivals::here)
        return true;
    for (const auto& [name, space] : spaces_)
        for (const auto& [cookie, seen] : space.seen) {
            if (!seen.cpu || seen.worker != task) continue;
            return std::ranges::none_of(space.seen, [&](const auto& other) {
                return other.second.worker != task && other.second.cpu == seen.cpu &&
                       other.second.policy == seen.policy && other.second.at.port == seen.at.port;
            });
        }
    return false;
}

/// No value: it has no listeners, or nothing is known yet.
std::optional<planner::ListenerPlan> Steering::plan_of(std::string_view policy) const {
    planner::ListenerPlan plan;
    for (const auto& [name, space] : spaces_)
        for (const auto& [cookie, seen] : space.seen) {
            if (seen.policy != policy) continue;
            if (seen.cpu)
                ++plan.steered;
            else
                ++plan.left[seen.why];
        }
    return plan.steered > 0 || !plan.left.empty() ? std::optional(std::move(plan)) : std::nullopt;
}

/// Processes that take no connections, while others of their policies take theirs: masters of servers. For
/// that, the takers of all listeners of the policy must be known, and the process old enough to have taken:
/// the workers of a reload may not have been looked at.
std::set<int> Steering::without_connections() const {
    constexpr std::uint64_t long_enough = 2; // seconds
    const auto now = host::ticks_since_boot();
    std::map<std::string_view, bool> are_known; // by policy: the takers of each of its listeners
    std::set<int> takers;
    for (const auto& [name, space] : spaces_) {
        for (const auto& [listener, server] : space.waiting)
            takers.insert(server.process);
        for (const auto& [cookie, seen] : space.seen)
            are_known.try_emplace(seen.policy, true).first->second &= seen.worker != TaskId{};
    }
    for (const auto& [taker, number] : accepts_)
        takers.insert(taker.first);
    std::set<int> found;
    for (const auto& [pid, process] : tasks_.table().processes()) {
        const auto its = are_known.find(shared_.current->policy(process.policy).name);
        const bool is_old = now >= process.id.start_time + long_enough * host::ticks_a_second();
        if (its != are_known.end() && its->second && is_old && !takers.contains(pid) && steers(process))
            found.insert(pid);
    }
    return found;
}

status::PolicyStatus::Packets Steering::packets(const std::string& policy) const {
    status::PolicyStatus::Packets packets{plan_of(policy), local(counts_of(policy), 0), {}, {}};
    for (const auto& [task, mover] : movers_) {
        const auto* process = find(mover.process);
        if (process != nullptr && moves(*process) && shared_.current->policy(process->policy).name == policy)
            ++packets.tasks[mover.state];
    }
    auto& accepts = packets.accepts;
    for (const auto& [task, taken] : accepts_) {
        const auto* process = tasks_.table().find(task.first);
        if (process == nullptr || shared_.current->policy(process->policy).name != policy) continue;
        accepts.least = accepts.workers++ == 0 ? taken : std::min(accepts.least, taken);
        accepts.most = std::max(accepts.most, taken);
    }
    return packets;
}

void Steering::count(const std::string& policy, Counters& into) {
    const auto found = read_sums_.find(policy);
    if (found == read_sums_.end()) return;
    into.reads = static_cast<double>(found->second.reads);
    into.local_reads = static_cast<double>(found->second.local);
}

void Steering::report(status::Overview& into) const {
    for (auto& policy : into.policies) {
        policy.packets = packets(policy.name);
        const auto* its = shared_.current.placements().find(policy.name);
        const auto& plan = policy.packets.steer;
        if (its == nullptr || !policy.note.empty()) continue;
        if (policy.held.processes > 0 && planner::is_pinned_only(*its, plan ? &*plan : nullptr))
            policy.note = planner::pinned_note(*its);
        else if (planner::lacks_flow_tables(*its, shared_.current.placements()))
            policy.note = "steer: flows brings nothing here: there is no table of flows "
                          "(rps_sock_flow_entries) in the kernel, or none in this network namespace";
    }
}

void Steering::explain(const inventory::ProcessScan& scan, status::ProcessExplanation& into) const {
    const auto process = scan.id();
    const auto* known = find(process);
    if (known == nullptr) return;
    const auto& policy = shared_.current->policy(known->policy).name;
    auto& receiving = into.receiving;
    const auto counts = counts_of(policy);
    if (receiving.local = local(counts, process.tid); receiving.local)
        receiving.arrivals = locality::arrival_places(counts.counts, shared_.current->machine(),
                                                      inventory::name_space(shared_.root, "self", "net"),
                                                      [&](int pid) { return pid == process.tid; });
    if (moves(*known)) {
        for (const auto& [task, mover] : movers_)
            if (mover.process == process) ++receiving.tasks[mover.state];
        if (receiving.tasks.empty()) receiving.tasks[AtArrivals::unknown] = 1;
    }
    for (const auto& [name, space] : spaces_)
        for (const auto& [cookie, seen] : space.seen) {
            if (seen.process != process.tid) continue;
            if (!seen.cpu) {
                ++into.accepting.left[seen.why];
                continue;
            }
            const bool is_datagram = seen.is_datagram();
            into.accepting.listeners.push_back({seen.at.port, seen.worker.tid, *seen.cpu, is_datagram});
            const auto handed = space.lanes->handed(seen.at.protocol);
            (is_datagram ? into.accepting.datagrams : into.accepting.handed) = {
                handed.to_lane, handed.to_next, handed.to_kernel, handed.full};
        }
    const auto* its = shared_.current.placements().find(policy);
    const auto plan = plan_of(policy);
    if (its != nullptr && planner::is_pinned_only(*its, plan ? &*plan : nullptr))
        into.accepting.pinned = planner::pinned_note(*its);
    const auto space = space_of_.find(process);
    const auto trouble = space == space_of_.end() ? spaces_.end() : spaces_.find(space->second);
    if (steers(*known) && !why_not_.empty())
        into.accepting.pinned = "nothing is steered or counted: " + why_not_;
    else if (trouble != spaces_.end() && trouble->second.is_left_out)
        into.accepting.pinned = "its network namespace is not steered, as too many others are";
    else if (trouble != spaces_.end() && !trouble->second.trouble.empty())
        into.accepting.pinned = trouble->second.trouble;
}

std::vector<status::Finding> Steering::problems() const {
    using status::Ailment;
    std::vector<status::Finding> list;
    const auto add = [&](Ailment kind, const std::vector<std::string>& seen) {
        list.push_back(status::finding(kind, "", "steering", seen));
    };
    // Where no NIC serves its processes, a policy acts as process: nothing could be steered.
    const auto& placements = shared_.current.placements();
    std::set<std::size_t> used;
    for (const auto& [pid, process] : tasks_.table().processes())
        used.insert(process.policy);
    bool may_steer = false;
    for (std::size_t i = 0; i < placements.policies.size(); ++i)
        may_steer |= placements.policies[i].policy->model == policy::Model::full &&
                     (!placements.policies[i].nics.empty() || !used.contains(i));
    if (!why_not_.empty() && may_steer) add(Ailment::no_bpf, {why_not_});
    if (paused_ && Clock::now() < *paused_ + fair_time) add(Ailment::crowd_of_addresses, {});
    const auto left_out =
        std::ranges::count_if(spaces_, [](const auto& one) { return one.second.is_left_out; });
    if (left_out > 0)
        add(Ailment::namespaces_left,
            {std::to_string(left_out), std::to_string(most_spaces), std::to_string(most_spaces_of_user)});
    for (const auto& [name, space] : spaces_) {
        if (!space.trouble.empty()) add(Ailment::namespace_trouble, {space.trouble});
        if (!space.no_room.empty()) add(Ailment::no_room, {space.no_room, std::to_string(name)});
    }
    return list;
}

void add_steering(Daemon& daemon, const Bus&) { daemon.add(std::make_unique<Steering>(daemon)); }

} // namespace affinityd::behaviours
