// SPDX-License-Identifier: Apache-2.0
#include "app/tasks.hpp"

#include "app/task_table.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "host/self.hpp"
#include "inventory/process_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::app {

void MemoryFollower::follow(const KnownProcess& process) {
    const auto& nodes = current_->machine().topology.nodes;
    if (current_->policy(process.policy).memory != policy::Memory::follow || nodes.size() < 2) return;
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
        enforcer_.move_memory(std::move(move));
}

void MemoryFollower::take_moved() {
    for (const auto& [move, code, left, took_ms] : enforcer_.take_moved()) {
        const auto found = states_.find(move.process);
        if (found == states_.end()) continue;
        auto& text = found->second.text;
        text = code == 0 ? fmt::format("moved in {} ms, {} pages stayed", took_ms, left)
                         : "not moved: " + std::generic_category().message(code);
        if (code != 0)
            log_.warn(fmt::format("memory of process {}: {}", move.process.tid, text), "memory not moved");
    }
}

const MemoryFollower::State* MemoryFollower::find(const TaskId& process) const {
    const auto found = states_.find(process);
    return found == states_.end() ? nullptr : &found->second;
}

namespace {

using Clock = LaterLooks::Clock;
using std::chrono::milliseconds;

milliseconds age(const TaskId& process) {
    const auto now = host::ticks_since_boot();
    const auto ticks = now > process.start_time ? now - process.start_time : 0;
    return milliseconds(ticks * 1000 / host::ticks_a_second());
}

} // namespace

void Settling::looked(KnownProcess& process, bool is_new, bool is_executed) {
    const auto now = Clock::now();
    if (!is_new && !is_executed) {
        if (process.settling && process.settling->due <= now) process.settling.reset();
        return;
    }
    process.settling.reset();
    const milliseconds whole = current_->policy(process.policy).settle;
    const auto left = is_executed ? whole : whole - std::min(whole, age(process.id));
    if (left == milliseconds::zero() || !root_.is_live()) return;
    process.settling = {now + left, now + left};
    later_.look_at(process.id.tid, sources_.owner(process.id.tid), now + left);
}

void Settling::made_threads(KnownProcess& process, std::uint64_t newest) {
    if (!process.settling || newest <= process.settling->newest) return; // it is looked at once more
    auto& [until, due, last] = *process.settling;
    last = newest;
    due = std::min(until, Clock::now() + current_->policy(process.policy).settle / 4);
    later_.look_at(process.id.tid, sources_.owner(process.id.tid), due);
}

void Settling::look_later(const inventory::ProcessFacts& facts, std::optional<std::size_t> policy,
                          bool has_changed) {
    const auto& world = *current_.world;
    if (!world.matcher().has_late_conditions()) return;
    const int pid = facts.id().tid;
    const ProcessLineage lineage(root_, table_, world.policies());
    if (!world.matcher().may_want_later(facts, lineage, policy))
        later_.end_series(pid);
    else if (has_changed)
        later_.begin_series(pid, sources_.owner(pid), Clock::now());
}

namespace {

constexpr std::size_t looked_at_a_pass = 64; // each costs a read

} // namespace

void Reaper::bury(const TaskId& thread, int pid, planner::Assignments& assignments) {
    assignments.leave(thread);
    if (const auto done = executor_.gone(machine::TaskMask{thread, pid, {}}); !done)
        log_.error(done.error().to_string());
}

void Reaper::bury_if_gone(int pid, const TaskId& thread, KnownProcess* known,
                          planner::Assignments& assignments) {
    const machine::TaskMask subject{thread, pid, {}};
    const auto present = enforcer_.present(subject);
    if (!present || *present || enforcer_.may_return(subject)) return; // an Error: nothing is known
    bury(thread, pid, assignments);
    if (known == nullptr) return;
    const auto* found = known->threads.find(thread.tid);
    if (found != nullptr && found->id == thread) known->threads.erase(thread.tid);
}

bool Reaper::sweep(const TaskTable& table, planner::Assignments& assignments,
                   const std::function<bool()>& out_of_time) {
    while (cursor_) {
        if (!doubtful_.empty()) {
            bury_if_gone(pid_, doubtful_.back(), nullptr, assignments);
            doubtful_.pop_back();
        } else if (pid_ = executor_.journal().next_process(*cursor_); pid_ != 0) {
            cursor_ = pid_;
            if (table.find(pid_) == nullptr) doubtful_ = executor_.journal().threads(pid_);
        } else {
            cursor_.reset();
            executor_.drop_gone(looked_at_a_pass);
            break;
        }
        if (out_of_time()) return false;
    }
    return true;
}

namespace {

std::uint64_t newest_start(const std::vector<inventory::Thread>& threads) {
    std::uint64_t newest = 0;
    for (const auto& thread : threads)
        newest = std::max(newest, thread.id.start_time);
    return newest;
}

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

/// True: they were read, or cannot be.
bool read_threads(Turn& turn, const OutOfTime& out_of_time, Log& log) {
    if (!turn.scan.step(out_of_time)) return false;
    auto threads = turn.scan.take_threads();
    if (threads)
        turn.threads = std::move(*threads);
    else
        log.error(threads.error().to_string(), "threads not listed");
    turn.is_incomplete = !threads;
    turn.is_read = true;
    return true;
}

/// Reads it once in each pass.
void learn_cpuset(KnownCpuset& known, int pid, inventory::FactSources& sources, std::uint64_t pass) {
    if (known.read_in == pass) return;
    const auto* cpuset = sources.cpuset(pid);
    known.cpus = cpuset == nullptr ? std::nullopt : std::optional(*cpuset);
    known.read_in = pass;
}

/// Others had their turn meanwhile. False: the thread has ended.
bool read_again(const host::Root& root, inventory::Thread& thread, Turn& turn) {
    auto now = inventory::read_thread(root, turn.scan.id().tid, thread.id.tid);
    turn.is_incomplete |= !now;
    if (!now || !*now || (*now)->id != thread.id) return false;
    thread = std::move(**now);
    return true;
}

TaskId parent_of(const TaskTable& table, int pid, std::size_t policy) {
    const auto* parent = table.find(pid);
    return parent == nullptr || parent->policy != policy ? TaskId{} : parent->id;
}

/// One that was put right is looked at soon again, as programs that set masks do so every few seconds.
void look_soon(const Tasks::Parts& parts, const KnownProcess& process, const TaskId& thread, uid_t owner,
               LaterLooks& later) {
    if (process.settling || !parts.root.is_live()) return;
    if (const auto when = parts.executor.next_look(machine::TaskMask{thread, process.id.tid, {}}))
        later.look_at(process.id.tid, owner, *when);
}

bool is_released(const Turn& turn, const Tasks::Parts& parts) {
    return serves_released_queue(turn.scan, parts.current.placements(), parts.releases) ||
           (turn.policy && parts.releases.covers(turn.world->policy(*turn.policy).name, turn.scan.id()));
}

/// The main thread was one whose birth nobody handled, and so has no record that it could have brought along.
/// Its creator may have ended, too, but what that had from us is known for a while.
void record_unseen(const Turn& turn, const machine::TaskMask& subject, const CpuSet& allowed,
                   const Tasks::Parts& parts) {
    const auto& online = parts.current.placements().online;
    const auto* source = parts.executor.journal().explain(subject.pid, allowed, online, 0);
    if (source == nullptr || (source->standing == state::Standing::kept && !turn.policy)) return;
    const auto& undo = source->terms->undo;
    if (const auto done = parts.executor.journal().put(
            subject, {undo.original, allowed, allowed, undo.policy}, nullptr, subject.task.start_time);
        !done)
        parts.log.error(done.error().to_string());
}

/// A thread that runs another program ends all others and has the main thread's number and start time from
/// then on, but its own mask, so it brings its record along.
void follow_exec(const Turn& turn, TaskTable& table, const Tasks::Parts& parts) {
    if (turn.next > 0) return; // it was done with the first thread
    if (turn.threads.empty() || turn.threads.front().id != turn.scan.id()) return;
    const auto& main = turn.threads.front();
    if (auto* known = table.find(main.id.tid)) known->has_lost_main = false;
    const auto& online = parts.current.placements().online;
    const auto has_ours = [&](const machine::TaskMask& task) {
        const auto record = parts.executor.journal().find(task);
        return record && planner::is_as_given(*record, main.allowed, online);
    };
    const machine::TaskMask subject{main.id, main.id.tid, main.comm};
    // An end of the main thread that no event told is not looked for: a worker that ended looks the same.
    if (!turn.change.has_lost_main) return;
    const bool is_explained = main.allowed.contains(online) || has_ours(subject);
    const std::span others(turn.threads.begin() + 1, turn.threads.end()); // ascending
    for (const auto& id : parts.executor.journal().threads(main.id.tid)) {
        const machine::TaskMask other{id, main.id.tid, {}};
        if (id == main.id || std::ranges::binary_search(others, id, {}, &inventory::Thread::id)) continue;
        if (!has_ours(other)) continue;
        if (const auto done = parts.executor.journal().rename(other, subject); !done)
            parts.log.error(done.error().to_string());
        return;
    }
    // Else somebody may have set it to what another thread has.
    if (!is_explained) record_unseen(turn, subject, main.allowed, parts);
}

} // namespace

bool serves_released_queue(const inventory::ProcessScan& scan, const planner::Placements& placements,
                           const Releases& releases) {
    if (releases.empty() || !scan.is_kernel()) return false;
    const auto queue = placements.threads.find(scan.id().tid);
    return queue != placements.threads.end() && releases.policy(queue->second.policy);
}

Tasks::Tasks(const Parts& parts, ThreadPlacer placer, Reaper reaper)
    : parts_(parts), placer_(std::move(placer)), reaper_(std::move(reaper)), sources_(parts.root),
      settling_(parts.root, parts.current, table_, sources_, events_.later()) {}

std::optional<std::size_t> Tasks::match(const inventory::ProcessScan& scan) const {
    const auto& world = *parts_.current.world;
    if (serves_released_queue(scan, world.placements(), parts_.releases)) return std::nullopt;
    const auto policy =
        world.matcher().match(scan.facts(), ProcessLineage(parts_.root, table_, world.policies()));
    if (policy && parts_.releases.covers(world.policy(*policy).name, scan.id())) return std::nullopt;
    return policy;
}

bool Tasks::must_look_at(const inventory::ProcessScan& scan, int creator) const {
    const int pid = scan.id().tid;
    const auto has_records = [this](int process) { return parts_.executor.journal().has_process(process); };
    if (serves_released_queue(scan, parts_.current.placements(), parts_.releases)) return false;
    if (table_.find(pid) != nullptr || has_records(pid) || has_records(creator)) return true;
    const auto& placements = parts_.current.placements();
    // A kernel thread that served a queue and does no more is looked at once again, to get its mask back.
    if (scan.is_kernel())
        return placements.threads.contains(pid) ||
               parts_.executor.journal().contains(machine::TaskMask{scan.id(), pid, {}});
    return !placements.claimed.empty() || placer_.may_be_left(scan);
}

void Tasks::drop(int pid) {
    const auto* known = table_.find(pid);
    if (known == nullptr) return;
    parts_.observer.left(*known);
    auto& assignments = placer_.assignments();
    assignments.leave(known->id);
    for (const auto& thread : known->threads)
        assignments.leave(thread.id);
    table_.erase(pid);
}

std::optional<Turn> Tasks::begin_turn(inventory::ProcessScan& scan, const ProcessChange& change) {
    const int pid = scan.id().tid;
    const auto creator = change.creator.value_or(scan.parent());
    if (const auto* known = table_.find(pid); known != nullptr && known->id != scan.id()) drop(pid);
    const auto policy = match(scan);
    // Most programs of a busy server end here: nothing is made for them.
    if (!policy && scan.facts().is_complete() && !must_look_at(scan, creator)) return std::nullopt;
    Turn turn{std::move(scan), change};
    turn.change.creator = creator;
    if (decide(turn, policy)) return turn;
    scan = std::move(turn.scan);
    return std::nullopt;
}

/// `policy`: that wants it. False: it need not be looked at further.
bool Tasks::decide(Turn& turn, std::optional<std::size_t> policy) {
    const auto& scan = turn.scan;
    const int pid = scan.id().tid;
    turn.world = parts_.current.world;
    if (!scan.facts().is_complete()) {
        // What could not be read says nothing: a process that is known stays what it is.
        if (!scan.facts().is_silent())
            parts_.log.error("process " + std::to_string(pid) +
                                 " cannot be matched: its files cannot be opened",
                             "process not read");
        if (auto* known = table_.find(pid)) {
            known->look.is_unread = true;
            known->look.was_executed |= turn.change.is_executed;
        }
        return false;
    }
    if (const auto* known = table_.find(pid); known != nullptr && known->id != scan.id()) return false;
    if (!policy && !must_look_at(scan, *turn.change.creator)) return false;
    if (auto* before = table_.find(pid)) {
        turn.change.has_lost_main |= before->has_lost_main;
        if (before->policy != policy) drop(pid);
    }
    turn.policy = policy;
    if (policy) {
        const bool is_new = table_.find(pid) == nullptr;
        auto& process = table_.insert(scan.id());
        process.comm = scan.comm();
        process.look.session = std::max(scan.session(), 0);
        process.policy = *policy;
        if (is_new) process.parent = parent_of(table_, scan.parent(), *policy);
        process.look.pass = passes_;
        const bool was_executed = std::exchange(process.look.was_executed, false);
        settling_.looked(process, is_new, std::exchange(turn.change.is_executed, false) || was_executed);
        parts_.observer.matched(process, scan.facts());
    }
    return true;
}

bool Tasks::go_on(Turn& turn, const OutOfTime& out_of_time) {
    const int pid = turn.scan.id().tid;
    const auto leave = [&] {
        const bool left = out_of_time();
        turn.was_left |= left;
        return left;
    };
    if (!turn.is_read && !read_threads(turn, leave, parts_.log)) return false;
    auto* known = table_.find(pid);
    // The process may have ended meanwhile, or gone over to another policy: whoever did that has done the
    // rest.
    const bool is_same = known != nullptr && known->id == turn.scan.id() && known->policy == turn.policy;
    if (turn.world != parts_.current.world || (turn.policy ? !is_same : known != nullptr)) return true;
    follow_exec(turn, table_, parts_);
    if (is_released(turn, parts_)) return true;
    auto view = view_of(turn.scan.id(), turn.policy, known);
    while (turn.next < turn.threads.size()) {
        const auto index = turn.next++;
        auto& thread = turn.threads[index];
        if (turn.was_left && !read_again(parts_.root, thread, turn)) continue;
        // Of a process that no policy wants, the cpuset matters only where it may have cut one of our masks.
        view.cpuset = nullptr;
        if (known != nullptr || parts_.executor.journal().contains(machine::TaskMask{thread.id, pid, {}}))
            view.cpuset = cpuset_of(known == nullptr ? turn.cpuset : known->cpuset, pid, thread);
        placer_.place(known, {view, thread, static_cast<unsigned>(index),
                              thread.id == turn.scan.id() ? *turn.change.creator : pid});
        if (known != nullptr) look_soon(parts_, *known, thread.id, sources_.owner(pid), events_.later());
        if (turn.next < turn.threads.size() && leave()) return false;
    }
    return finish(turn, leave);
}

/// Clears away threads that ended while nobody looked: thousands may have. True: all of them.
bool Tasks::finish(Turn& turn, const OutOfTime& out_of_time) {
    const int pid = turn.scan.id().tid;
    auto* known = table_.find(pid);
    if (known == nullptr || turn.threads.empty()) return true;
    if (!turn.unseen) turn.unseen = find_unseen(turn, *known, parts_.executor.journal());
    while (!turn.unseen->empty()) {
        const TaskId id = turn.unseen->back();
        turn.unseen->pop_back();
        reaper_.bury_if_gone(pid, id, known, placer_.assignments());
        if (!turn.unseen->empty() && out_of_time()) return false;
    }
    if (turn.threads.size() > 1) settling_.made_threads(*known, newest_start(turn.threads));
    // So that it is watched; of a program that settles, at the end of that, as many do not live so long.
    if (!known->settling) learn_cpuset(known->cpuset, pid, sources_, passes_);
    parts_.observer.placed(*known);
    return true;
}

const CpuSet* Tasks::cpuset_of(KnownCpuset& known, int pid, const inventory::Thread& thread) {
    // A thread that may run everywhere is in no narrower cpuset, so that births wait for no further file.
    if (thread.allowed.contains(parts_.current.placements().online)) return nullptr;
    learn_cpuset(known, pid, sources_, passes_);
    return known.cpus ? &*known.cpus : nullptr;
}

void Tasks::begin_pass() {
    sources_.refresh();
    ++passes_; // what an unfinished pass saw is seen again
    unseen_.reset();
    reaper_.begin_pass();
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
    if (!reaper_.sweep(table_, placer_.assignments(), out_of_time)) return false;
    if (passes_ >= missing_until_) missing_until_ = 0;
    return true;
}

void Tasks::use_policies_of(const World& before) {
    const auto& now = parts_.current->policies().policies;
    const auto place_of = [&](const std::string& name) {
        return static_cast<std::size_t>(std::ranges::find(now, name, &policy::Policy::name) - now.begin());
    };
    std::vector<std::size_t> places;
    for (const auto& policy : before.policies().policies) {
        places.push_back(place_of(policy.name));
        if (places.back() == now.size()) placer_.assignments().forget_policy(policy.name);
    }
    for (auto& [pid, process] : table_.processes())
        process.policy = places[process.policy];
    // A process whose policy has gone is looked at once more, as one that no policy wants.
    std::erase_if(table_.processes(), [&](const auto& entry) {
        const bool is_gone = entry.second.policy == now.size();
        if (is_gone) parts_.observer.left(entry.second);
        return is_gone;
    });
    unfinished_.clear(); // the pass that follows sees these processes anyway
}

namespace {

/// A process is placed at once as far as that is quick; the rest of a large one waits until other events were
/// handled.
constexpr std::chrono::milliseconds at_once{1};
constexpr std::size_t most_unfinished = 16;

/// What an event named cannot be read.
void miss(const Tasks::Parts& parts, const Error& why) {
    parts.log.error(why.to_string(), "process not read");
    parts.observer.missed();
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
    auto scan = inventory::ProcessScan::open(parts_.root, pid, &sources_);
    if (!scan) return miss(parts_, scan.error());
    if (!*scan) { // the ends of its threads may not have been told one by one
        events_.later().forget(pid);
        if (table_.find(pid) != nullptr) parts_.observer.missed();
        return;
    }
    events_.count_handled();
    const auto before = table_.policy_of(pid);
    parts_.observer.named(**scan);
    auto turn = begin_turn(**scan, change);
    const auto& facts = (turn ? turn->scan : **scan).facts();
    const auto tell_if_it_moved = [&] {
        if (table_.policy_of(pid) != before) parts_.observer.came_or_went();
    };
    if (!facts.is_complete() && !facts.is_silent()) parts_.observer.missed();
    settling_.look_later(facts, turn ? turn->policy : std::nullopt, change.has_changed);
    if (!turn) return tell_if_it_moved();
    const auto until = std::chrono::steady_clock::now() + at_once;
    const bool is_finished = go_on(*turn, [&] { return std::chrono::steady_clock::now() >= until; });
    tell_if_it_moved(); // also one whose facts were read to their end only now
    if (is_finished) {
        if (turn->is_incomplete) parts_.observer.missed();
        return;
    }
    if (unfinished_.size() >= most_unfinished) return parts_.observer.missed();
    turn->person = sources_.starter(pid);
    unfinished_.push_back(std::move(*turn));
    parts_.observer.work_left();
}

bool Tasks::step(const OutOfTime& out_of_time) {
    auto& budget = events_.budget();
    while (!unfinished_.empty()) {
        Turn turn = std::move(unfinished_.front());
        unfinished_.pop_front();
        const auto begun = Budget::Clock::now();
        if (budget.is_spent(turn.person, begun)) {
            parts_.observer.missed();
            continue;
        }
        const int pid = turn.scan.id().tid;
        const auto before = table_.policy_of(pid);
        const bool is_finished = go_on(turn, out_of_time);
        const auto now = Budget::Clock::now();
        budget.charge(turn.person, now - begun, now);
        if (table_.policy_of(pid) != before) parts_.observer.came_or_went();
        if (!is_finished) {
            unfinished_.push_front(std::move(turn));
            return false;
        }
        if (turn.is_incomplete) parts_.observer.missed();
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
    const auto thread = inventory::read_thread(parts_.root, pid, tid);
    if (!thread) return miss(parts_, thread.error());
    if (!*thread) return;
    place_fresh(*known, **thread);
    settling_.made_threads(*known, (*thread)->id.start_time);
}

void Tasks::thread_renamed(int pid, int tid, std::string_view name) {
    KnownProcess* known = table_.find(pid);
    if (known == nullptr) return;
    const auto* thread = known->threads.find(tid);
    if (thread == nullptr || missing_until_ != 0 || !parts_.root.is_live()) return thread_changed(pid, tid);
    auto allowed = host::get_affinity(tid);
    if (!allowed) return; // gone: its exit comes next
    place_fresh(*known,
                {.id = thread->id, .comm = std::string(name), .flags = 0, .allowed = std::move(*allowed)});
}

void Tasks::place_fresh(KnownProcess& process, const inventory::Thread& thread) {
    events_.count_handled();
    // One that was told to let go stays known until the next pass.
    if (parts_.releases.covers(parts_.current->policy(process.policy).name, process.id)) return;
    // Threads come in the order of their ids: those before this one that are known give its index, if some
    // rule asks for it.
    const auto& rules = parts_.current->policy(process.policy).threads;
    const bool is_asked = std::ranges::any_of(rules, [](const auto& rule) { return rule.index.has_value(); });
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
    const bool lives_on = may_be_last && inventory::lives_on(parts_.root, known->id);
    if (tid == pid && lives_on) return lose_main(*known, placer_.assignments());
    if (const auto* thread = known->threads.find(tid)) {
        placer_.ended(thread->id);
        reaper_.bury(thread->id, pid, placer_.assignments());
        known->threads.erase(tid);
    }
    // The process is gone with its last thread.
    if (!known->threads.empty() || lives_on) return;
    reaper_.bury(known->id, pid, placer_.assignments());
    parts_.releases.forget(known->id);
    events_.later().forget(pid);
    drop(pid);
    parts_.observer.came_or_went();
}

std::optional<int> TaskRound::next_pid() {
    if (!pids_) {
        auto pids = inventory::PidStream::open(root_);
        if (!pids) return give_up("the processes could not be listed: " + pids.error().to_string());
        pids_ = std::move(*pids);
    }
    const auto pid = pids_->next();
    if (!pid) return give_up("the list of processes broke off: " + pid.error().to_string());
    return *pid;
}

std::nullopt_t TaskRound::give_up(const std::string& why) {
    log_.error(why, "not listed");
    for (auto& [pid, process] : tasks_.table().processes())
        process.look.is_unread = true;
    return std::nullopt;
}

bool TaskRound::begin_next() {
    const auto pid = next_pid();
    is_listed_ = !pid;
    if (!pid) return true;
    auto scan = inventory::ProcessScan::open(root_, *pid, &tasks_.sources());
    if (!scan) {
        log_.error(scan.error().to_string(), "process not read");
        if (auto* known = tasks_.table().find(*pid)) known->look.is_unread = true;
    }
    if (!scan || !*scan) return false;
    listeners_.seen(**scan);
    turn_ = tasks_.begin_turn(**scan);
    return turn_.has_value();
}

bool TaskRound::step(const OutOfTime& out_of_time) {
    while (!is_listed_) {
        if (turn_ || begin_next()) {
            if (turn_ && !tasks_.go_on(*turn_, out_of_time)) return false;
            if (turn_)
                if (const auto* known = tasks_.table().find(turn_->scan.id().tid)) listeners_.placed(*known);
            turn_.reset();
        }
        if (!is_listed_ && out_of_time()) return false;
    }
    return true;
}

namespace {} // namespace

bool GroupMembers::read_next() {
    if (!walk_) {
        if (groups_.empty()) return true;
        walk_.emplace(sys_, "fs/cgroup" + groups_.back(), 0);
        groups_.pop_back();
    }
    const auto done = walk_->step(pids_);
    if (done && !*done) return false;
    if (!done) too_many_(); // it cannot be read: a pass goes by processes
    walk_.reset();
    return groups_.empty();
}

bool GroupMembers::step(const OutOfTime& out_of_time) {
    bool is_read = next_ > 0;
    while (!is_read) {
        is_read = read_next();
        if (pids_.size() > most) {
            too_many_();
            return true;
        }
        if (out_of_time() && !is_read) return false;
    }
    while (next_ < pids_.size()) {
        tasks_.process_moved(pids_[next_++]);
        if (out_of_time()) return next_ == pids_.size();
    }
    return true;
}

void Followers::matched(const KnownProcess& process, const inventory::ProcessFacts& facts) {
    parts_.matched(process);
    // The control group is a file: it is read only where a policy is about units.
    if (parts_.current->policy(process.policy).means != policy::Means::cpuset)
        return parts_.units.forget(process.id);
    const auto& cgroup = facts.cgroup();
    // One that could not be read is no other one: the fence stays until the next pass.
    if (facts.is_complete()) parts_.units.observe(process.id, cgroup, process.policy);
}

void Followers::placed(const KnownProcess& process) {
    memory_.follow(process);
    parts_.steering.observe(process);
}

void Followers::left(const KnownProcess& process) {
    memory_.forget(process.id);
    parts_.units.forget(process.id);
}

} // namespace affinityd::app
