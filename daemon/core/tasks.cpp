// SPDX-License-Identifier: Apache-2.0
#include "core/tasks.hpp"

#include "base/clock.hpp"
#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "host/self.hpp"
#include "inventory/process_files.hpp"

#include <algorithm>
#include <chrono>
#include <ranges>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace affinityd::core {

namespace {

constexpr std::size_t most_unfinished = 16;
constexpr std::size_t looked_at_a_pass = 64; // subjects that may have gone: each costs a read

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
    if (thread->seat.is_own) assignments.drop_others(process.id, {}); // groups stay
    process.threads.erase(process.id);
}

} // namespace

bool serves_released_queue(const inventory::ProcessScan& scan, const planner::Placements& placements,
                           const Releases& releases) {
    if (releases.empty() || !scan.is_kernel()) return false;
    const auto queue = placements.threads.find(scan.id().tid);
    return queue != placements.threads.end() && releases.policy(queue->second.policy);
}

Tasks::Tasks(Shared& shared, ThreadPlacer placer)
    : shared_(shared), current_(shared.current), placer_(std::move(placer)), sources_(shared.root),
      events_(sources_, table_) {}

std::optional<std::size_t> Tasks::match(const inventory::ProcessScan& scan) const {
    if (shared_.releases.all()) return std::nullopt;
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
    if (table_.find(pid) != nullptr || shared_.journal().has_process(pid) ||
        shared_.journal().has_process(creator))
        return true;
    // A kernel thread that served a queue and does no more is looked at once again, to get its mask back.
    if (scan.is_kernel())
        return placements.threads.contains(pid) || !placements.isolated.empty() ||
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

void Tasks::process_changed(int pid, const ProcessChange& change) {
    // A process named again begins anew; a pass finishes one that is named again and again.
    if (std::erase_if(unfinished_, [&](const auto& one) { return one.pid == pid; }) > 0) miss();
    auto scan = inventory::ProcessScan::open(shared_.root, pid, &sources_);
    if (!scan) return miss(scan.error());
    if (!*scan) { // the ends of its threads may not have been told one by one
        events_.later().drop(pid);
        if (table_.find(pid) != nullptr) miss();
        return;
    }
    events_.count_handled();
    const auto before = table_.policy_of(pid);
    for (const auto& behaviour : shared_.behaviours)
        behaviour->saw(**scan, false);
    auto turn = begin_turn(**scan, change);
    const auto& facts = (turn ? turn->scan : **scan).facts();
    if (!facts.is_complete() && !facts.is_silent()) miss();
    look_later(facts, turn ? turn->policy : std::nullopt, change.has_changed);
    if (table_.policy_of(pid) != before) came_or_went();
    if (!turn) return;
    // The rest of a large one waits until other events were handled.
    auto look = look_at(std::move(*turn));
    const bool is_finished = look.step(each_millisecond());
    if (!is_finished && unfinished_.size() >= most_unfinished) return miss();
    if (!is_finished) unfinished_.emplace_back(pid, sources_.starter(pid), std::move(look));
    if (!is_finished || !doubtful_.empty()) shared_.work.want(Work::Urgency::now);
}

bool Tasks::step(const OutOfTime& out_of_time) {
    auto& budget = events_.budget();
    while (!unfinished_.empty()) {
        auto& [pid, person, look] = unfinished_.front();
        const bool is_spent = budget.is_spent(person, Budget::Clock::now());
        if (is_spent) miss();
        const auto begun = thread_time();
        const bool is_over = is_spent || look.step(out_of_time);
        budget.charge(person, thread_time() - begun, Budget::Clock::now());
        if (!is_over) return false;
        unfinished_.pop_front();
        if (out_of_time()) break;
    }
    return unfinished_.empty() && drop_doubtful(out_of_time);
}

void Tasks::has_started(int pid) {
    auto* known = table_.find(pid);
    if (known == nullptr || !known->settling) return;
    known->settling->due = LaterLooks::Clock::now();
    process_changed(pid);
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
    // A released process stays known until the next pass.
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
        const TaskId id = thread->id;
        drop(id, pid);
        known->threads.erase(id);
    }
    // The process is gone with its last thread.
    if (!known->threads.empty() || lives_on) return;
    drop(known->id, pid);
    shared_.releases.drop(known->id);
    events_.later().drop(pid);
    drop(pid);
    came_or_went();
}

// A process, whether an event or a pass names it.

/// Matches a process; no value: it need not be looked at further. Else the scan has gone into the turn.
std::optional<Turn> Tasks::begin_turn(inventory::ProcessScan& scan, const ProcessChange& change) {
    const int pid = scan.id().tid;
    const auto creator = change.creator.value_or(scan.parent());
    if (const auto* known = table_.find(pid); known != nullptr && known->id != scan.id()) drop(pid);
    const auto policy = match(scan);
    auto* known = table_.find(pid);
    if (!scan.facts().is_complete()) {
        // A file that could not be read says nothing: a process that is known stays what it is.
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
    Turn turn{std::move(scan), change, policy};
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
    // The process may have a new unit, which a pass finds.
    if (is_new && current_->policy(policy).means == policy::Means::cpuset)
        shared_.work.want(Work::Urgency::later);
}

/// Others had their turn meanwhile. False: the thread has ended, or cannot be read.
bool Tasks::read_again(inventory::Thread& thread, int pid) {
    auto now = inventory::read_thread(shared_.root, pid, thread.id.tid);
    if (!now) miss();
    if (!now || !*now || (*now)->id != thread.id) return false;
    thread = std::move(**now);
    return true;
}

/// A process with thousands of threads is left and taken up again.
Slices Tasks::look_at(Turn turn) {
    const auto world = current_.world; // another one has other indices
    const auto id = turn.scan.id();
    const int pid = id.tid;
    bool was_left = false; // what events said meanwhile is newer
    while (!turn.scan.step(a_part))
        was_left |= co_yield pause;
    auto read = turn.scan.take_threads();
    if (!read) {
        shared_.log.error(read.error().to_string(), "threads not listed");
        miss();
    }
    auto threads = std::move(read).value_or(Threads{});
    KnownCpuset unwanted; // of a process that no policy wants
    for (unsigned index = 0; index < threads.size(); ++index) {
        if (index > 0) was_left |= co_yield pause;
        auto* known = table_.find(pid);
        // The process may have ended meanwhile, or gone over to another policy, with which the rest was done.
        const bool is_same = known != nullptr && known->id == id && known->policy == turn.policy;
        if (world != current_.world || (turn.policy ? !is_same : known != nullptr)) co_return;
        if (turn.policy && shared_.releases.covers(world->policy(*turn.policy).name, id)) co_return;
        if (index == 0) follow_exec(turn, threads);
        auto& thread = threads[index];
        if (was_left && !read_again(thread, pid)) continue;
        auto view = view_of(id, turn.policy, known);
        // The cpuset of a process that no policy wants matters only where it may have cut one of our masks.
        if (known != nullptr || shared_.journal().contains(machine::TaskMask{thread.id, pid, {}}))
            view.cpuset = cpuset_of(known == nullptr ? unwanted : known->cpuset, pid, thread);
        placer_.place(known, {view, thread, index, thread.id == id ? *turn.change.creator : pid});
        if (known != nullptr) look_soon(*known, thread.id);
    }
    if (auto* known = table_.find(pid); known != nullptr && !threads.empty()) finish(*known, threads);
}

/// A thread that runs another program ends all others and has the main thread's number and start time from
/// then on, but its own mask, so it brings its record along.
void Tasks::follow_exec(const Turn& turn, const Threads& threads) {
    if (threads.front().id != turn.scan.id()) return;
    const auto& main = threads.front();
    if (auto* known = table_.find(main.id.tid)) known->has_lost_main = false;
    // An end of the main thread that no event told is not looked for: a worker that ended looks the same.
    if (!turn.change.has_lost_main) return;
    const auto& online = current_.placements().online;
    const auto has_ours = [&](const machine::TaskMask& task) {
        const auto record = shared_.journal().find(task);
        return record && planner::is_as_given(*record, main.allowed, online);
    };
    const machine::TaskMask subject{main.id, main.id.tid, main.comm};
    const std::span others(threads.begin() + 1, threads.end()); // ascending
    for (const auto& id : shared_.journal().threads(main.id.tid)) {
        const machine::TaskMask other{id, main.id.tid, {}};
        if (id == main.id || std::ranges::binary_search(others, id, {}, &inventory::Thread::id)) continue;
        if (!has_ours(other)) continue;
        shared_.report(shared_.journal().rename(other, subject));
        return;
    }
    if (main.allowed.contains(online) || has_ours(subject)) return;
    // No event told of the birth of this thread, so it brought no record along. The journal knows for a while
    // what a creator had from us, even one that has ended.
    const auto* source = shared_.journal().explain(subject.pid, main.allowed, online, 0);
    if (source == nullptr || (source->standing == state::Standing::kept && !turn.policy)) return;
    const auto& record = source->terms->undo;
    shared_.report(shared_.journal().put(subject,
                                         {record.original, main.allowed, main.allowed, record.policy},
                                         nullptr, subject.task.start_time));
}

/// Known threads that the scan has not found may have ended unseen.
void Tasks::doubt_unseen(const Threads& threads, const KnownProcess& known) {
    const int pid = known.id.tid;
    const std::span others(threads.begin() + 1, threads.end()); // ascending
    const auto doubt = [&](const TaskId& id) {
        if (id != threads.front().id && !std::ranges::binary_search(others, id, {}, &inventory::Thread::id))
            doubtful_.push_back({id, pid, {}});
    };
    for (const auto& thread : known.threads)
        doubt(thread.id);
    for (const auto& id : shared_.journal().threads(pid))
        if (known.threads.find(id.tid) == nullptr) doubt(id);
}

/// All its threads were looked at.
void Tasks::finish(KnownProcess& known, const Threads& threads) {
    doubt_unseen(threads, known);
    if (threads.size() > 1)
        made_threads(known, std::ranges::max(threads, {}, [](const auto& thread) {
                                return thread.id.start_time;
                            }).id.start_time);
    // So that it is watched; of a program that settles, at the end of that, as many do not live so long.
    if (!known.settling) learn_cpuset(known.cpuset, known.id.tid);
    for (const auto& behaviour : shared_.behaviours)
        behaviour->placed(known);
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
        events_.later().look_at(pid, *when);
}

/// If the process is new to its policy, or runs another program, it begins to settle; if its time has come,
/// it has settled. A process that was there long before the daemon has settled, too.
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
    events_.later().look_at(process.id.tid, now + left);
}

/// A process with several threads, the newest with that start time, has settled when it has made no more for
/// a quarter of the time.
void Tasks::made_threads(KnownProcess& process, std::uint64_t newest) {
    if (!process.settling || newest <= process.settling->newest) return; // it is looked at once more
    auto& [until, due, last] = *process.settling;
    last = newest;
    due = std::min(until, LaterLooks::Clock::now() + current_->policy(process.policy).settle / 4);
    events_.later().look_at(process.id.tid, due);
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
        events_.later().begin_series(pid, LaterLooks::Clock::now());
}

// The pass.

/// The rest is not listed: what is known may still be there.
void Tasks::give_up_list(const std::string& why) {
    shared_.log.error(why, "not listed");
    for (auto& [pid, process] : table_.processes())
        process.look.is_unread = true;
}

Slices Tasks::look_at_all() {
    sources_.refresh();
    groups_.clear();
    ++passes_; // what an unfinished pass saw is seen again
    auto pids = inventory::PidStream::open(shared_.root);
    if (!pids) co_return give_up_list("the processes could not be listed: " + pids.error().to_string());
    while (true) {
        const auto pid = pids->next();
        if (!pid) co_return give_up_list("the list of processes broke off: " + pid.error().to_string());
        if (!*pid) co_return;
        auto scan = inventory::ProcessScan::open(shared_.root, **pid, &sources_);
        if (!scan) {
            shared_.log.error(scan.error().to_string(), "process not read");
            if (auto* known = table_.find(**pid)) known->look.is_unread = true;
        } else if (*scan) {
            for (const auto& behaviour : shared_.behaviours)
                behaviour->saw(**scan, true);
            if (auto turn = begin_turn(**scan)) {
                auto look = look_at(std::move(*turn));
                for (bool is_new_slice = false; !look.part(is_new_slice);)
                    is_new_slice = co_yield pause;
                if (const auto* known = table_.find(**pid)) note_group(*known);
            }
        }
        co_yield pause;
    }
}

void Tasks::note_group(const KnownProcess& process) {
    const auto text = shared_.root.proc().text(std::to_string(process.id.tid) + "/cgroup");
    auto group = text ? inventory::cgroup_of(*text) : "/";
    if (group != "/") groups_[current_->policy(process.policy).name].insert(std::move(group));
}

Slices Tasks::look_at(std::vector<int> pids) {
    for (const int pid : pids) {
        process_changed(pid);
        co_yield pause;
    }
}

bool Tasks::may_ask(uid_t user) {
    return !events_.budget().is_spent(sources_.person(user), Budget::Clock::now());
}

void Tasks::charge(uid_t user, std::chrono::nanoseconds time) {
    events_.budget().charge(sources_.person(user), time, Budget::Clock::now());
}

Slices Tasks::end_pass() {
    std::vector<int> unseen;
    for (auto& [pid, process] : table_.processes()) {
        if (std::exchange(process.look.is_unread, false)) process.look.pass = passes_;
        if (process.look.pass != passes_) unseen.push_back(pid);
    }
    for (const int pid : unseen) {
        // An event may have named it since.
        const auto* known = table_.find(pid);
        if (known != nullptr && known->look.pass != passes_ && !known->look.is_unread) drop(pid);
        co_yield pause;
    }
    // Drops tasks that ended unseen, of processes outside the table: the others have just been seen.
    const auto& journal = shared_.journal();
    for (int pid = journal.next_process(0); pid != 0; pid = journal.next_process(pid)) {
        if (table_.find(pid) == nullptr)
            for (const auto& id : journal.threads(pid))
                doubtful_.push_back({id, pid, {}});
        do
            co_yield pause;
        while (!drop_doubtful(a_part));
    }
    shared_.executor.drop_gone(looked_at_a_pass);
    if (passes_ >= missing_until_) missing_until_ = 0;
}

void Tasks::use_policies_of(const World& before) {
    const auto& now = current_->policies().policies;
    std::vector<std::size_t> places;
    for (const auto& policy : before.policies().policies) {
        const auto at = std::ranges::find(now, policy.name, &policy::Policy::name);
        places.push_back(static_cast<std::size_t>(at - now.begin()));
        if (at == now.end()) placer_.assignments().drop_policy(policy.name);
    }
    for (auto& [pid, process] : table_.processes())
        process.policy = places[process.policy];
    // A process whose policy has gone is looked at once more, as one that no policy wants.
    std::erase_if(table_.processes(), [&](const auto& entry) {
        const bool is_gone = entry.second.policy == now.size();
        for (const auto& behaviour : shared_.behaviours)
            if (is_gone) behaviour->dropped(entry.second.id);
        return is_gone;
    });
    unfinished_.clear(); // the pass that follows sees these processes anyway
}

// Tasks that have ended.

/// The process is no longer under its policy.
void Tasks::drop(int pid) {
    const auto* known = table_.find(pid);
    if (known == nullptr) return;
    for (const auto& behaviour : shared_.behaviours)
        behaviour->dropped(known->id);
    auto& assignments = placer_.assignments();
    assignments.drop(known->id);
    for (const auto& thread : known->threads)
        assignments.drop(thread.id);
    table_.erase(pid);
}

/// A thread that is known to have ended.
void Tasks::drop(const TaskId& thread, int pid) {
    placer_.assignments().drop(thread);
    shared_.report(shared_.executor.gone(machine::TaskMask{thread, pid, {}}));
}

/// Tasks that may have ended. True: all of them.
bool Tasks::drop_doubtful(const OutOfTime& out_of_time) {
    while (!doubtful_.empty()) {
        const auto task = std::move(doubtful_.back());
        doubtful_.pop_back();
        if (shared_.executor.is_gone(task)) {
            drop(task.task, task.pid);
            if (auto* known = table_.find(task.pid)) known->threads.erase(task.task);
        }
        if (out_of_time()) return doubtful_.empty();
    }
    return true;
}

Slices Tasks::look_at_members(std::vector<std::string> groups, std::function<void()> too_many) {
    constexpr std::size_t most = 1024; // a pass goes by processes
    std::vector<int> pids;
    for (const auto& group : groups) {
        const auto members = inventory::processes_in(shared_.root.sys(), group);
        if (members) pids.insert(pids.end(), members->begin(), members->end());
        if (!members || pids.size() > most) co_return too_many();
        co_yield pause;
    }
    for (const int pid : pids) {
        process_moved(pid);
        co_yield pause;
    }
}

} // namespace affinityd::core
