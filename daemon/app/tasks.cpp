// SPDX-License-Identifier: Apache-2.0
#include "app/tasks.hpp"

#include "app/units.hpp"
#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "host/self.hpp"
#include "inventory/process_files.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

/// A process is placed at once as far as that is quick; the rest of a large one waits until other events were
/// handled.
constexpr std::chrono::milliseconds at_once{1};
constexpr std::size_t most_unfinished = 16;
constexpr std::size_t looked_at_a_pass = 64; // subjects that may have gone: each costs a read

/// The threads that are known and were not seen, each once.
std::vector<TaskId> find_unseen(const Turn& turn, const KnownProcess& known, const state::Journal& journal) {
    std::vector<TaskId> seen, unseen;
    for (const auto& thread : turn.threads)
        seen.push_back(thread.id);
    std::ranges::sort(seen);
    const auto note = [&](const TaskId& id) {
        if (!std::ranges::binary_search(seen, id)) unseen.push_back(id);
    };
    for (const auto& thread : known.threads)
        note(thread.id);
    for (const auto& id : journal.threads(known.id.tid))
        note(id);
    std::ranges::sort(unseen);
    unseen.erase(std::unique(unseen.begin(), unseen.end()), unseen.end());
    return unseen;
}

std::chrono::milliseconds age(const TaskId& process) {
    const auto now = host::ticks_since_boot();
    const auto ticks = now > process.start_time ? now - process.start_time : 0;
    return std::chrono::milliseconds(ticks * 1000 / host::ticks_a_second());
}

/// The main thread has ended before the others: it is the process by its number, and one of the others takes
/// that over when it runs another program. So its record stays, and the slots of the process.
void lose_main(KnownProcess& process, planner::Assignments& assignments) {
    const auto* thread = process.threads.find(process.id.tid);
    if (thread == nullptr) return;
    process.has_lost_main = true;
    if (thread->seat.is_own) assignments.leave_others(process.id, {}); // groups stay
    process.threads.erase(process.id.tid);
}

} // namespace

void MemoryFollower::follow(const KnownProcess& process) {
    const auto& nodes = shared_.current->machine().topology.nodes;
    if (shared_.current->policy(process.policy).memory != policy::Memory::follow || nodes.size() < 2) return;
    CpuSet cpus;
    for (const auto& thread : process.threads)
        cpus |= thread.present;
    enforcer::MemoryMove move{process.id, {}, {}};
    for (const auto& node : nodes)
        (node.cpus.intersects(cpus) ? move.to : move.from).push_back(node.id);
    auto& state = states_[process.id];
    if (move.to == state.nodes) return;
    state = {move.to, "waits"};
    // The memory of one that may run everywhere is left where it is: there is no better place.
    if (move.to.empty() || move.from.empty())
        state.text = "stays";
    else
        shared_.enforcer.move_memory(std::move(move));
}

void MemoryFollower::take_moved() {
    for (const auto& [move, code, left, took_ms] : shared_.enforcer.take_moved()) {
        const auto found = states_.find(move.process);
        if (found == states_.end()) continue;
        auto& text = found->second.text;
        text = code == 0 ? fmt::format("moved in {} ms, {} pages stayed", took_ms, left)
                         : "not moved: " + std::generic_category().message(code);
        if (code != 0)
            shared_.log.warn(fmt::format("memory of process {}: {}", move.process.tid, text),
                             "memory not moved");
    }
}

const MemoryFollower::State* MemoryFollower::find(const TaskId& process) const {
    const auto found = states_.find(process);
    return found == states_.end() ? nullptr : &found->second;
}

bool serves_released_queue(const inventory::ProcessScan& scan, const planner::Placements& placements,
                           const Releases& releases) {
    if (releases.empty() || !scan.is_kernel()) return false;
    const auto queue = placements.threads.find(scan.id().tid);
    return queue != placements.threads.end() && releases.policy(queue->second.policy);
}

Tasks::Tasks(Shared& shared, ThreadPlacer placer, const Followers& followers)
    : shared_(shared), current_(shared.current), placer_(std::move(placer)), followers_(followers),
      memory_(shared), sources_(shared.root) {}

std::optional<std::size_t> Tasks::match(const inventory::ProcessScan& scan) const {
    const auto& world = *current_.world;
    if (serves_released_queue(scan, world.placements(), shared_.releases)) return std::nullopt;
    const auto policy =
        world.matcher().match(scan.facts(), ProcessLineage(shared_.root, table_, world.policies()));
    if (policy && shared_.releases.covers(world.policy(*policy).name, scan.id())) return std::nullopt;
    return policy;
}

bool Tasks::must_look_at(const inventory::ProcessScan& scan, int creator) const {
    const int pid = scan.id().tid;
    const auto& placements = current_.placements();
    if (serves_released_queue(scan, placements, shared_.releases)) return false;
    if (table_.find(pid) != nullptr || shared_.journal().has_process(pid) ||
        shared_.journal().has_process(creator))
        return true;
    // A kernel thread that served a queue and does no more is looked at once again, to get its mask back.
    if (scan.is_kernel())
        return placements.threads.contains(pid) ||
               shared_.journal().contains(machine::TaskMask{scan.id(), pid, {}});
    return !placements.claimed.empty() || placer_.undo().may_be_left(scan, placements.online);
}

// Events.

void Tasks::miss(const Error& why) {
    shared_.log.error(why.to_string(), "process not read");
    miss();
}

/// NICs may need another number of lanes.
void Tasks::came_or_went() {
    if (current_->needs_nic_usage()) shared_.want_pass();
}

/// True for a process that writes masks of interrupts too, and is not known yet, while some are under policy:
/// a pass tells it which.
bool Tasks::sets_interrupts(const inventory::ProcessScan& scan) const {
    const bool is_new = !scan.is_kernel() && followers_.writers.is_new(scan.id().tid, scan.comm());
    if (!is_new || !shared_.acts()) return false;
    return std::ranges::any_of(current_.placements().queues, [](const auto& target) {
        return std::holds_alternative<planner::IrqMask>(target.subject);
    });
}

void Tasks::process_changed(int pid, const ProcessChange& change) {
    // A process that is named again and again keeps the progress of its turn, and gets another one
    // afterwards.
    const auto under_way =
        std::ranges::find(unfinished_, pid, [](const Turn& turn) { return turn.scan.id().tid; });
    if (under_way != unfinished_.end()) {
        auto& again = under_way->again;
        if (!again) again = change;
        if (change.creator) again->creator = change.creator;
        again->is_executed |= change.is_executed;
        again->has_changed |= change.has_changed;
        return;
    }
    auto scan = inventory::ProcessScan::open(shared_.root, pid, &sources_);
    if (!scan) return miss(scan.error());
    if (!*scan) { // the ends of its threads may not have been told one by one
        events_.later().forget(pid);
        if (table_.find(pid) != nullptr) miss();
        return;
    }
    events_.count_handled();
    const auto before = table_.policy_of(pid);
    if (sets_interrupts(**scan)) shared_.want_pass();
    auto turn = begin_turn(**scan, change);
    const auto& facts = (turn ? turn->scan : **scan).facts();
    if (!facts.is_complete() && !facts.is_silent()) miss();
    look_later(facts, turn ? turn->policy : std::nullopt, change.has_changed);
    const auto until = std::chrono::steady_clock::now() + at_once;
    const bool is_finished = !turn || go_on(*turn, [&] { return std::chrono::steady_clock::now() >= until; });
    if (table_.policy_of(pid) != before) came_or_went();
    if (is_finished) {
        if (turn && turn->is_incomplete) miss();
        return;
    }
    if (unfinished_.size() >= most_unfinished) return miss();
    turn->person = sources_.starter(pid);
    unfinished_.push_back(std::move(*turn));
    shared_.work.want(Work::Urgency::now);
}

bool Tasks::step(const OutOfTime& out_of_time) {
    auto& budget = events_.budget();
    while (!unfinished_.empty()) {
        Turn turn = std::move(unfinished_.front());
        unfinished_.pop_front();
        const auto begun = Budget::Clock::now();
        if (budget.is_spent(turn.person, begun)) {
            miss();
            continue;
        }
        const int pid = turn.scan.id().tid;
        const auto before = table_.policy_of(pid);
        const bool is_finished = go_on(turn, out_of_time);
        const auto now = Budget::Clock::now();
        budget.charge(turn.person, now - begun, now);
        if (table_.policy_of(pid) != before) came_or_went();
        if (!is_finished) {
            unfinished_.push_front(std::move(turn));
            return false;
        }
        if (turn.is_incomplete) miss();
        if (turn.again) process_changed(pid, *turn.again);
        if (out_of_time()) break;
    }
    return unfinished_.empty();
}

void Tasks::process_moved(int pid) {
    if (auto* known = table_.find(pid)) known->cpuset = {};
    process_changed(pid);
}

void Tasks::thread_changed(int pid, int tid) {
    KnownProcess* known = table_.find(pid);
    if (known == nullptr) return;
    const auto thread = inventory::read_thread(shared_.root, pid, tid);
    if (!thread) return miss(thread.error());
    if (!*thread) return;
    place_fresh(*known, **thread);
    made_threads(*known, (*thread)->id.start_time);
}

void Tasks::thread_renamed(int pid, int tid, std::string_view name) {
    KnownProcess* known = table_.find(pid);
    if (known == nullptr) return;
    const auto* thread = known->threads.find(tid);
    if (thread == nullptr || missing_until_ != 0 || !shared_.root.is_live()) return thread_changed(pid, tid);
    auto allowed = host::get_affinity(tid);
    if (!allowed) return; // gone: its exit comes next
    place_fresh(*known,
                {.id = thread->id, .comm = std::string(name), .flags = 0, .allowed = std::move(*allowed)});
}

void Tasks::place_fresh(KnownProcess& process, const inventory::Thread& thread) {
    events_.count_handled();
    // One that was told to let go stays known until the next pass.
    const auto& policy = current_->policy(process.policy);
    if (shared_.releases.covers(policy.name, process.id)) return;
    // Threads come in the order of their ids: those before this one that are known give its index, if some
    // rule asks for it.
    const bool is_asked =
        std::ranges::any_of(policy.threads, [](const auto& rule) { return rule.index.has_value(); });
    const auto index = is_asked ? process.threads.count_below(thread.id.tid) : 0;
    const int pid = process.id.tid;
    auto view = view_of(process.id, process.policy, &process);
    view.cpuset = cpuset_of(process.cpuset, pid, thread);
    placer_.place(&process, {view, thread, static_cast<unsigned>(index), pid});
}

void Tasks::task_gone(int pid, int tid) {
    KnownProcess* known = table_.find(pid);
    if (known == nullptr) return;
    const bool may_be_last = tid == pid || known->threads.size() < 2;
    const bool lives_on = may_be_last && inventory::lives_on(shared_.root, known->id);
    if (tid == pid && lives_on) return lose_main(*known, placer_.assignments());
    if (const auto* thread = known->threads.find(tid)) {
        placer_.joiners().erase(thread->id);
        bury(thread->id, pid);
        known->threads.erase(tid);
    }
    // The process is gone with its last thread.
    if (!known->threads.empty() || lives_on) return;
    bury(known->id, pid);
    shared_.releases.forget(known->id);
    events_.later().forget(pid);
    drop(pid);
    came_or_went();
}

// One process, whether an event or a pass names it.

/// Matches a process; no value: it need not be looked at further. Else the scan has gone into the turn.
std::optional<Turn> Tasks::begin_turn(inventory::ProcessScan& scan, const ProcessChange& change) {
    const int pid = scan.id().tid;
    const auto creator = change.creator.value_or(scan.parent());
    if (const auto* known = table_.find(pid); known != nullptr && known->id != scan.id()) drop(pid);
    const auto policy = match(scan);
    auto* known = table_.find(pid);
    if (!scan.facts().is_complete()) {
        // What could not be read says nothing: a process that is known stays what it is.
        if (!scan.facts().is_silent())
            shared_.log.error(fmt::format("process {} cannot be matched: its files cannot be opened", pid),
                              "process not read");
        if (known != nullptr) {
            known->look.is_unread = true;
            known->look.was_executed |= change.is_executed;
        }
        return std::nullopt;
    }
    // Most programs of a busy server end here: nothing is made for them.
    if (!policy && !must_look_at(scan, creator)) return std::nullopt;
    Turn turn{std::move(scan), change, policy, current_.world};
    turn.change.creator = creator;
    if (known != nullptr) {
        turn.change.has_lost_main |= known->has_lost_main;
        if (known->policy != policy) drop(pid);
    }
    if (policy) take_in(turn, *policy);
    return turn;
}

/// A policy wants this process; its threads come next.
void Tasks::take_in(Turn& turn, std::size_t policy) {
    const auto& scan = turn.scan;
    const bool is_new = table_.find(scan.id().tid) == nullptr;
    auto& process = table_.insert(scan.id());
    process.comm = scan.comm();
    process.look.session = std::max(scan.session(), 0);
    process.policy = policy;
    if (is_new) {
        const auto* parent = table_.find(scan.parent());
        process.parent = parent == nullptr || parent->policy != policy ? TaskId{} : parent->id;
    }
    process.look.pass = passes_;
    const bool was_executed = std::exchange(process.look.was_executed, false);
    settle(process, is_new, std::exchange(turn.change.is_executed, false) || was_executed);
    current_->saw(policy);
    if (current_->awaits_claim(policy)) shared_.want_pass();
    // Its unit may be a new one, which a pass finds.
    if (is_new && current_->policy(policy).means == policy::Means::cpuset)
        shared_.work.want(Work::Urgency::later);
}

/// True: they were read, or cannot be.
bool Tasks::read_threads(Turn& turn, const OutOfTime& out_of_time) {
    if (!turn.scan.step(out_of_time)) return false;
    auto threads = turn.scan.take_threads();
    if (threads)
        turn.threads = std::move(*threads);
    else
        shared_.log.error(threads.error().to_string(), "threads not listed");
    turn.is_incomplete = !threads;
    turn.is_read = true;
    return true;
}

/// Others had their turn meanwhile. False: the thread has ended.
bool Tasks::read_again(inventory::Thread& thread, Turn& turn) const {
    auto now = inventory::read_thread(shared_.root, turn.scan.id().tid, thread.id.tid);
    turn.is_incomplete |= !now;
    if (!now || !*now || (*now)->id != thread.id) return false;
    thread = std::move(**now);
    return true;
}

bool Tasks::is_released(const Turn& turn) const {
    return serves_released_queue(turn.scan, current_.placements(), shared_.releases) ||
           (turn.policy && shared_.releases.covers(turn.world->policy(*turn.policy).name, turn.scan.id()));
}

/// Looks at its threads until `out_of_time` says so. True: at all of them.
bool Tasks::go_on(Turn& turn, const OutOfTime& out_of_time) {
    const int pid = turn.scan.id().tid;
    const auto leave = [&] {
        const bool left = out_of_time();
        turn.was_left |= left;
        return left;
    };
    if (!turn.is_read && !read_threads(turn, leave)) return false;
    auto* known = table_.find(pid);
    // The process may have ended meanwhile, or gone over to another policy, with which the rest was done.
    const bool is_same = known != nullptr && known->id == turn.scan.id() && known->policy == turn.policy;
    if (turn.world != current_.world || (turn.policy ? !is_same : known != nullptr)) return true;
    follow_exec(turn);
    if (is_released(turn)) return true;
    auto view = view_of(turn.scan.id(), turn.policy, known);
    while (turn.next < turn.threads.size()) {
        const auto index = turn.next++;
        auto& thread = turn.threads[index];
        if (turn.was_left && !read_again(thread, turn)) continue;
        // Of a process that no policy wants, the cpuset matters only where it may have cut one of our masks.
        view.cpuset = nullptr;
        if (known != nullptr || shared_.journal().contains(machine::TaskMask{thread.id, pid, {}}))
            view.cpuset = cpuset_of(known == nullptr ? turn.cpuset : known->cpuset, pid, thread);
        placer_.place(known, {view, thread, static_cast<unsigned>(index),
                              thread.id == turn.scan.id() ? *turn.change.creator : pid});
        if (known != nullptr) look_soon(*known, thread.id);
        if (turn.next < turn.threads.size() && leave()) return false;
    }
    return finish(turn, leave);
}

/// A thread that runs another program ends all others and has the main thread's number and start time from
/// then on, but its own mask, so it brings its record along.
void Tasks::follow_exec(const Turn& turn) {
    if (turn.next > 0) return; // it was done with the first thread
    if (turn.threads.empty() || turn.threads.front().id != turn.scan.id()) return;
    const auto& main = turn.threads.front();
    if (auto* known = table_.find(main.id.tid)) known->has_lost_main = false;
    // An end of the main thread that no event told is not looked for: a worker that ended looks the same.
    if (!turn.change.has_lost_main) return;
    const auto& online = current_.placements().online;
    const auto has_ours = [&](const machine::TaskMask& task) {
        const auto record = shared_.journal().find(task);
        return record && planner::is_as_given(*record, main.allowed, online);
    };
    const machine::TaskMask subject{main.id, main.id.tid, main.comm};
    const std::span others(turn.threads.begin() + 1, turn.threads.end()); // ascending
    for (const auto& id : shared_.journal().threads(main.id.tid)) {
        const machine::TaskMask other{id, main.id.tid, {}};
        if (id == main.id || std::ranges::binary_search(others, id, {}, &inventory::Thread::id)) continue;
        if (!has_ours(other)) continue;
        shared_.report(shared_.journal().rename(other, subject));
        return;
    }
    if (main.allowed.contains(online) || has_ours(subject)) return;
    // The thread is one whose birth no event told, and so has no record that it could have brought along. Its
    // creator may have ended, too, but what that had from us is known for a while.
    const auto* source = shared_.journal().explain(subject.pid, main.allowed, online, 0);
    if (source == nullptr || (source->standing == state::Standing::kept && !turn.policy)) return;
    const auto& record = source->terms->undo;
    shared_.report(shared_.journal().put(subject,
                                         {record.original, main.allowed, main.allowed, record.policy},
                                         nullptr, subject.task.start_time));
}

/// Clears away threads that ended while nobody looked: thousands may have. True: all of them.
bool Tasks::finish(Turn& turn, const OutOfTime& out_of_time) {
    const int pid = turn.scan.id().tid;
    auto* known = table_.find(pid);
    if (known == nullptr || turn.threads.empty()) return true;
    if (!turn.unseen) turn.unseen = find_unseen(turn, *known, shared_.journal());
    while (!turn.unseen->empty()) {
        const TaskId id = turn.unseen->back();
        turn.unseen->pop_back();
        bury_if_gone(pid, id, known);
        if (!turn.unseen->empty() && out_of_time()) return false;
    }
    if (turn.threads.size() > 1)
        made_threads(*known, std::ranges::max(turn.threads, {}, [](const auto& thread) {
                                 return thread.id.start_time;
                             }).id.start_time);
    // So that it is watched; of a program that settles, at the end of that, as many do not live so long.
    if (!known->settling) learn_cpuset(known->cpuset, pid);
    memory_.follow(*known);
    followers_.steering.observe(*known);
    return true;
}

/// Reads it once in each pass.
void Tasks::learn_cpuset(KnownCpuset& known, int pid) {
    if (known.read_in == passes_) return;
    const auto* cpuset = sources_.cpuset(pid);
    known.cpus = cpuset == nullptr ? std::nullopt : std::optional(*cpuset);
    known.read_in = passes_;
}

const CpuSet* Tasks::cpuset_of(KnownCpuset& known, int pid, const inventory::Thread& thread) {
    // A thread that may run everywhere is in no narrower cpuset, so that births wait for no further file.
    if (thread.allowed.contains(current_.placements().online)) return nullptr;
    learn_cpuset(known, pid);
    return known.cpus ? &*known.cpus : nullptr;
}

// Looks without an event.

/// A thread that was put right is looked at soon again, as programs that set masks do so every few seconds.
void Tasks::look_soon(const KnownProcess& process, const TaskId& thread) {
    if (process.settling || !shared_.root.is_live()) return;
    const int pid = process.id.tid;
    if (const auto when = shared_.executor.next_look(machine::TaskMask{thread, pid, {}}))
        events_.later().look_at(pid, sources_.owner(pid), *when);
}

/// If the process is new to its policy, or runs another program, it begins to settle; if its time has come,
/// it has settled. One that was there long before the daemon has settled, too.
void Tasks::settle(KnownProcess& process, bool is_new, bool is_executed) {
    using std::chrono::milliseconds;
    const auto now = LaterLooks::Clock::now();
    if (!is_new && !is_executed) {
        if (process.settling && process.settling->due <= now) process.settling.reset();
        return;
    }
    process.settling.reset();
    const milliseconds whole = current_->policy(process.policy).settle;
    const auto left = is_executed ? whole : whole - std::min(whole, age(process.id));
    if (left == milliseconds::zero() || !shared_.root.is_live()) return;
    process.settling = {now + left, now + left};
    events_.later().look_at(process.id.tid, sources_.owner(process.id.tid), now + left);
}

/// It has several threads, the newest with that start time: it has settled when it has made no more for a
/// quarter of the time.
void Tasks::made_threads(KnownProcess& process, std::uint64_t newest) {
    if (!process.settling || newest <= process.settling->newest) return; // it is looked at once more
    auto& [until, due, last] = *process.settling;
    last = newest;
    due = std::min(until, LaterLooks::Clock::now() + current_->policy(process.policy).settle / 4);
    events_.later().look_at(process.id.tid, sources_.owner(process.id.tid), due);
}

/// `policy`: the one that wants the process now, if any does. `has_changed`: an event has named it.
void Tasks::look_later(const inventory::ProcessFacts& facts, std::optional<std::size_t> policy,
                       bool has_changed) {
    const auto& world = *current_.world;
    if (!world.matcher().has_late_conditions()) return;
    const int pid = facts.id().tid;
    const ProcessLineage lineage(shared_.root, table_, world.policies());
    if (!world.matcher().may_want_later(facts, lineage, policy))
        events_.later().end_series(pid);
    else if (has_changed)
        events_.later().begin_series(pid, sources_.owner(pid), LaterLooks::Clock::now());
}

// The pass.

void Tasks::begin_pass() {
    sources_.refresh();
    ++passes_; // what an unfinished pass saw is seen again
    pids_.reset();
    turn_.reset();
    is_listed_ = false;
    unseen_.reset();
    swept_ = 0;
    doubtful_.clear();
}

std::optional<int> Tasks::next_pid() {
    if (!pids_) {
        auto pids = inventory::PidStream::open(shared_.root);
        if (!pids) return give_up_list("the processes could not be listed: " + pids.error().to_string());
        pids_ = std::move(*pids);
    }
    const auto pid = pids_->next();
    if (!pid) return give_up_list("the list of processes broke off: " + pid.error().to_string());
    return *pid;
}

/// The rest is not listed: what is known may still be there.
std::nullopt_t Tasks::give_up_list(const std::string& why) {
    shared_.log.error(why, "not listed");
    for (auto& [pid, process] : table_.processes())
        process.look.is_unread = true;
    return std::nullopt;
}

/// True: there is a process to go on with, or the list is at its end.
bool Tasks::begin_next() {
    const auto pid = next_pid();
    is_listed_ = !pid;
    if (!pid) return true;
    auto scan = inventory::ProcessScan::open(shared_.root, *pid, &sources_);
    if (!scan) {
        shared_.log.error(scan.error().to_string(), "process not read");
        if (auto* known = table_.find(*pid)) known->look.is_unread = true;
    }
    if (!scan || !*scan) return false;
    if (!(*scan)->is_kernel()) followers_.writers.see(*pid, (*scan)->comm());
    turn_ = begin_turn(**scan);
    return turn_.has_value();
}

bool Tasks::look_at_all(const OutOfTime& out_of_time) {
    while (!is_listed_) {
        if (turn_ || begin_next()) {
            if (turn_ && !go_on(*turn_, out_of_time)) return false;
            if (turn_)
                if (const auto* known = table_.find(turn_->scan.id().tid)) followers_.bookkeeping.see(*known);
            turn_.reset();
        }
        if (!is_listed_ && out_of_time()) return false;
    }
    pids_.reset();
    return true;
}

bool Tasks::end_pass(const OutOfTime& out_of_time) {
    if (!unseen_) {
        unseen_.emplace();
        for (auto& [pid, process] : table_.processes()) {
            if (std::exchange(process.look.is_unread, false)) process.look.pass = passes_;
            if (process.look.pass != passes_) unseen_->push_back(pid);
        }
    }
    while (!unseen_->empty()) {
        const int pid = unseen_->back();
        unseen_->pop_back();
        // An event may have named it since.
        const auto* known = table_.find(pid);
        if (known != nullptr && known->look.pass != passes_ && !known->look.is_unread) drop(pid);
        if (out_of_time()) return false;
    }
    if (!sweep(out_of_time)) return false;
    if (passes_ >= missing_until_) missing_until_ = 0;
    return true;
}

void Tasks::use_policies_of(const World& before) {
    const auto& now = current_->policies().policies;
    std::vector<std::size_t> places;
    for (const auto& policy : before.policies().policies) {
        const auto at = std::ranges::find(now, policy.name, &policy::Policy::name);
        places.push_back(static_cast<std::size_t>(at - now.begin()));
        if (at == now.end()) placer_.assignments().forget_policy(policy.name);
    }
    for (auto& [pid, process] : table_.processes())
        process.policy = places[process.policy];
    // A process whose policy has gone is looked at once more, as one that no policy wants.
    std::erase_if(table_.processes(), [&](const auto& entry) {
        const bool is_gone = entry.second.policy == now.size();
        if (is_gone) memory_.forget(entry.second.id);
        return is_gone;
    });
    unfinished_.clear(); // the pass that follows sees these processes anyway
}

// Tasks that have ended.

/// The process is no longer under its policy.
void Tasks::drop(int pid) {
    const auto* known = table_.find(pid);
    if (known == nullptr) return;
    memory_.forget(known->id);
    auto& assignments = placer_.assignments();
    assignments.leave(known->id);
    for (const auto& thread : known->threads)
        assignments.leave(thread.id);
    table_.erase(pid);
}

/// A thread that is known to have ended.
void Tasks::bury(const TaskId& thread, int pid) {
    placer_.assignments().leave(thread);
    shared_.report(shared_.executor.gone(machine::TaskMask{thread, pid, {}}));
}

/// A thread that may have ended; `known`: the process's entry, if it has one.
void Tasks::bury_if_gone(int pid, const TaskId& thread, KnownProcess* known) {
    if (!shared_.executor.is_gone(machine::TaskMask{thread, pid, {}})) return;
    bury(thread, pid);
    if (known == nullptr) return;
    const auto* found = known->threads.find(thread.tid);
    if (found != nullptr && found->id == thread) known->threads.erase(thread.tid);
}

/// Tasks of processes outside the table that ended while nobody looked. Those of processes in it have just
/// been seen. True: all of them.
bool Tasks::sweep(const OutOfTime& out_of_time) {
    while (swept_) {
        if (!doubtful_.empty()) {
            bury_if_gone(swept_pid_, doubtful_.back(), nullptr);
            doubtful_.pop_back();
        } else if (swept_pid_ = shared_.journal().next_process(*swept_); swept_pid_ != 0) {
            swept_ = swept_pid_;
            if (table_.find(swept_pid_) == nullptr) doubtful_ = shared_.journal().threads(swept_pid_);
        } else {
            swept_.reset();
            shared_.executor.drop_gone(looked_at_a_pass);
            break;
        }
        if (out_of_time()) return false;
    }
    return true;
}

bool GroupMembers::step(const OutOfTime& out_of_time) {
    while (!groups_.empty()) {
        const auto pids = processes_in(sys_, groups_.back());
        groups_.pop_back();
        if (pids) pids_.insert(pids_.end(), pids->begin(), pids->end());
        if (!pids || pids_.size() > most) { // a pass goes by processes
            too_many_();
            return true;
        }
        if (out_of_time()) return false;
    }
    while (!pids_.empty()) {
        const int pid = pids_.back();
        pids_.pop_back();
        tasks_.process_moved(pid);
        if (out_of_time()) return pids_.empty();
    }
    return true;
}

} // namespace affinityd::app
