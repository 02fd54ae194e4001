// SPDX-License-Identifier: Apache-2.0
#include "app/tasks.hpp"

#include "app/lineage.hpp"
#include "host/root.hpp"
#include "inventory/process_files.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

namespace affinityd::app {

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

/// Reads on what it takes to know which policy wants the process. True: all of it.
bool read_facts(const Turn& turn, const OutOfTime& out_of_time) {
    const auto& facts = turn.scan.shared_facts();
    while (facts->is_unfinished()) {
        facts->go_on();
        if (facts->is_unfinished() && out_of_time()) return false;
    }
    return true;
}

/// True: they were read, or cannot be.
bool read_threads(Turn& turn, const OutOfTime& out_of_time, Log& log) {
    if (!turn.scan.step(out_of_time)) return false;
    auto threads = turn.scan.take_threads();
    if (threads)
        turn.threads = std::move(*threads);
    else
        log.error(threads.error().to_string(), {"threads not listed", turn.scan.id().tid});
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
    const auto& facts = scan.facts();
    const bool is_known_whole = !facts.is_unfinished() && facts.is_complete();
    if (!policy && is_known_whole && !must_look_at(scan, creator)) return std::nullopt;
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
    if (scan.facts().is_unfinished()) { // it is decided when go_on() has read all
        if (auto* known = table_.find(pid)) known->look.is_unread = true; // stays what it is until then
        return true;
    }
    if (!scan.facts().is_complete()) {
        // What could not be read says nothing: a process that is known stays what it is.
        if (!scan.facts().is_silent())
            parts_.log.error("process " + std::to_string(pid) +
                                 " cannot be matched: its files cannot be opened",
                             {"process not read", pid});
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
    if (turn.scan.facts().is_unfinished()) {
        if (!read_facts(turn, leave)) return false;
        if (!decide(turn, match(turn.scan))) turn.world.reset();
        turn.is_incomplete |= !turn.scan.facts().is_complete() && !turn.scan.facts().is_silent();
        if (!turn.world) return true;
    }
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

} // namespace affinityd::app
