// SPDX-License-Identifier: Apache-2.0
#include "app/event_queue.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::app {

namespace {

using host::ProcEvent;
using Kind = TaskNews::Kind;

constexpr std::size_t most_news = 32; // of one process; more: it is looked at as a whole
constexpr std::size_t most_events_of_user = 4096, most_events = 16'384;
constexpr std::size_t crowd = 64;    // of one user
constexpr std::size_t most_due = 64; // that begin to wait at once, because their time has come

Kind kind_of(const ProcEvent& event) {
    if (event.kind == ProcEvent::Kind::exit) return Kind::gone;
    if (!event.is_thread() || event.kind == ProcEvent::Kind::exec || event.kind == ProcEvent::Kind::ids)
        return Kind::process;
    return event.kind == ProcEvent::Kind::fork ? Kind::born : Kind::renamed;
}

bool is_end(const ProcEvent& event) { return event.kind == ProcEvent::Kind::exit && event.tid == event.pid; }

bool ends_with_process(const ProcessNews& process) {
    return process.news.empty() ? process.is_whole : process.news.back().kind == Kind::process;
}

/// A look at the whole process takes the place of all news, if there are none or too many.
void look_at_whole(ProcessNews& process) {
    process.is_whole = true;
    process.news.clear();
}

/// Looking at the whole process, which is still to come, says all that is newer.
void add_process(ProcessNews& process) {
    if (ends_with_process(process)) return;
    if (process.news.empty() || process.news.size() >= most_news)
        look_at_whole(process);
    else
        process.news.push_back({Kind::process, process.pid, {}});
}

void add_news(ProcessNews& process, Kind kind, const ProcEvent& event) {
    if (kind == Kind::process) return add_process(process);
    auto& news = process.news;
    const bool is_of_main = event.tid == process.pid;
    if (ends_with_process(process) && !(kind == Kind::gone && is_of_main)) return;
    if (kind == Kind::gone && !is_of_main) {
        // Of one that was born and has ended meanwhile nothing need be known.
        const auto is_birth = [&](const TaskNews& one) {
            return one.kind == Kind::born && one.tid == event.tid;
        };
        if (const auto birth = std::find_if(news.rbegin(), news.rend(), is_birth); birth != news.rend()) {
            news.erase(std::remove_if(std::prev(birth.base()), news.end(),
                                      [&](const TaskNews& one) { return one.tid == event.tid; }),
                       news.end());
            return;
        }
    }
    if (kind == Kind::renamed) {
        const auto is_same = [&](const TaskNews& one) { return one.tid == event.tid; };
        const auto last = std::find_if(news.rbegin(), news.rend(), is_same);
        if (last != news.rend() && last->kind == Kind::renamed) {
            last->name = event.name;
            return;
        }
    }
    if (news.size() < most_news)
        news.push_back({kind, event.tid, event.name});
    else
        look_at_whole(process);
}

} // namespace

std::size_t EventQueue::waiting_of(uid_t user) const {
    const auto of = waiting_.find(user);
    return of == waiting_.end() ? 0 : of->second.size();
}

uid_t EventQueue::owner_of(int pid, const Asked& asked) const {
    return asked.owner(pid, [this](uid_t one) { return waiting_of(one) >= crowd; });
}

/// Of a process that does not wait yet; null: too many do. A busy server starts thousands of programs that no
/// policy wants: to ask whose each is takes a seventh of the time that it costs.
ProcessNews* EventQueue::begin(const ProcEvent& event, const Asked& asked, Clock::time_point now) {
    if (empty() && floods_.note_newcomer(event.pid)) return &first_.emplace(ProcessNews{.pid = event.pid});
    if (first_) join_others(asked);
    return entry_of(event.pid, owner_of(event.pid, asked), now);
}

/// The one that waited alone does so no more: it takes turns as all do.
void EventQueue::join_others(const Asked& asked) {
    const int pid = first_->pid;
    auto& entry = entries_.try_emplace(pid).first->second;
    entry.news = *std::exchange(first_, std::nullopt);
    entry.user = owner_of(pid, asked);
    queue(pid, entry.user);
}

ProcessNews* EventQueue::entry_of(int pid, uid_t user, Clock::time_point now) {
    if (entries_.size() >= most_events || waiting_of(user) >= most_events_of_user) return nullptr;
    auto& entry = entries_.try_emplace(pid).first->second;
    entry.user = user;
    entry.news.pid = pid;
    floods_.count(pid, user, now);
    admit(pid, entry, now);
    return &entry.news;
}

void EventQueue::admit(int pid, Entry& entry, Clock::time_point now) {
    const auto due = floods_.next_look(pid, now);
    entry.is_held = due > now;
    if (entry.is_held)
        held_.emplace(due, pid);
    else
        queue(pid, entry.user);
}

void EventQueue::queue(int pid, uid_t user) {
    auto& waiting = waiting_[user];
    if (waiting.empty()) turns_.push_back(user);
    waiting.push_back(pid);
}

/// What is known of a process that waits; null: it does not.
ProcessNews* EventQueue::find(int pid) {
    if (first_ && first_->pid == pid) return &*first_;
    const auto found = entries_.find(pid);
    return found == entries_.end() ? nullptr : &found->second.news;
}

/// Of a process that waits already.
ProcessNews* EventQueue::count(const ProcEvent& event, const Asked& asked, Clock::time_point now) {
    if (first_ && first_->pid == event.pid) {
        if (is_end(event)) return &*first_;
        join_others(asked);
    }
    auto& entry = entries_.at(event.pid);
    floods_.count(event.pid, entry.user, now);
    return &entry.news;
}

void EventQueue::add(const ProcEvent& event, const Asked& asked, Clock::time_point now) {
    const auto kind = kind_of(event);
    const bool is_child = event.kind == ProcEvent::Kind::fork && !event.is_thread();
    // A parent that waits may be one that a policy wants.
    if (is_child && !asked.is_known(event.parent_pid) && find(event.parent_pid) == nullptr) {
        // So far it is what its parent is.
        if (asked.all_children) later_.begin_series(event.pid, owner_of(event.pid, asked), now);
        return;
    }
    // Of a process under policy, other threads may go on: who handles the event finds out.
    if (is_end(event) && !asked.is_known(event.pid)) later_.forget(event.pid);
    auto* news = find(event.pid);
    // Of a process that nobody knows, threads are of no interest; it is read as a whole if it waits.
    if (kind != Kind::process && news == nullptr && !asked.is_known(event.pid)) {
        if (is_end(event)) floods_.forget(event.pid);
        return;
    }
    news = news == nullptr ? begin(event, asked, now) : count(event, asked, now);
    if (news == nullptr) {
        left_out_ = true;
        return;
    }
    news->has_changed |= kind == Kind::process;
    news->is_executed |= event.kind == ProcEvent::Kind::exec;
    if (is_child && !news->creator) news->creator = event.parent_pid;
    add_news(*news, kind, event);
    if (is_end(event)) end(event.pid);
}

/// There will be no more of it: it waits for no pause.
void EventQueue::end(int pid) {
    floods_.forget(pid);
    const auto found = entries_.find(pid);
    if (found != entries_.end() && std::exchange(found->second.is_held, false)) // held_ finds it moved
        queue(pid, found->second.user);
}

void EventQueue::release_due(Clock::time_point now) {
    while (!held_.empty() && held_.begin()->first <= now) {
        const int pid = held_.begin()->second;
        held_.erase(held_.begin());
        const auto found = entries_.find(pid);
        if (found != entries_.end() && std::exchange(found->second.is_held, false))
            queue(pid, found->second.user);
    }
    for (std::size_t i = 0; i < most_due && later_.next_due() <= now; ++i) {
        const auto due = later_.take_due(now);
        if (!due) return;
        auto* news = find(due->pid);
        if (news == nullptr) news = entry_of(due->pid, due->user, now);
        // One for which there is no room is found by a pass.
        if (news != nullptr) add_process(*news);
    }
}

std::optional<ProcessNews> EventQueue::next(Clock::time_point now) {
    release_due(now);
    uid_t user = 0; // which all have that are muted
    auto news = first_ ? std::exchange(first_, std::nullopt) : take_turn(user);
    if (!news || floods_.empty()) return news;
    floods_.looked(news->pid, now);
    if (floods_.is_muted(news->pid, now)) look_again(news->pid, user, now);
    return news;
}

std::optional<ProcessNews> EventQueue::take_turn(uid_t& user) {
    if (turns_.empty()) return std::nullopt;
    user = turns_.front();
    turns_.pop_front();
    const auto of = waiting_.find(user);
    const int pid = of->second.front();
    of->second.pop_front();
    if (of->second.empty())
        waiting_.erase(of);
    else
        turns_.push_back(user);
    const auto found = entries_.find(pid);
    auto news = std::move(found->second.news);
    entries_.erase(found);
    return news;
}

/// What it does is not heard of: it is looked at as if it had done something.
void EventQueue::look_again(int pid, uid_t user, Clock::time_point now) {
    auto& entry = entries_.try_emplace(pid).first->second;
    entry.user = user;
    entry.news = {.pid = pid, .is_whole = true};
    admit(pid, entry, now);
}

EventQueue::Clock::time_point EventQueue::next_due() const {
    auto due = later_.next_due();
    if (floods_.mutes()) due = std::min(due, floods_.next_change());
    return held_.empty() ? due : std::min(due, held_.begin()->first);
}

} // namespace affinityd::app
