// SPDX-License-Identifier: Apache-2.0
#include "core/task_events.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace affinityd::core {

namespace {

using std::chrono::milliseconds;

/// Most programs have done it at the first; the distances grow with the time that has passed.
constexpr std::array series{milliseconds(100),  milliseconds(200),  milliseconds(400),  milliseconds(600),
                            milliseconds(800),  milliseconds(1000), milliseconds(1500), milliseconds(2000),
                            milliseconds(3000), milliseconds(5000)};
constexpr std::size_t most_looks = 16'384;

} // namespace

LaterLooks::Look* LaterLooks::find_or_add(int pid) {
    if (looks_.size() >= most_looks && !looks_.contains(pid)) return nullptr;
    return &looks_[pid];
}

/// Sorts a process among all by the time of its next look; forgets a process without any.
void LaterLooks::place(int pid, Look& look) {
    due_.erase({look.due, pid});
    look.due = std::min(look.series, look.once);
    if (look.due == never)
        looks_.erase(pid);
    else
        due_.emplace(look.due, pid);
}

void LaterLooks::begin_series(int pid, Clock::time_point now) {
    auto* look = find_or_add(pid);
    if (look == nullptr) return;
    look->begun = now;
    look->next = 0;
    look->series = now + series.front();
    place(pid, *look);
}

void LaterLooks::end_series(int pid) {
    const auto found = looks_.find(pid);
    if (found == looks_.end()) return;
    found->second.series = never;
    place(pid, found->second);
}

void LaterLooks::look_at(int pid, Clock::time_point when) {
    auto* look = find_or_add(pid);
    if (look == nullptr) return;
    look->once = when;
    place(pid, *look);
}

void LaterLooks::drop(int pid) {
    const auto found = looks_.find(pid);
    if (found == looks_.end()) return;
    due_.erase({found->second.due, pid});
    looks_.erase(found);
}

std::optional<int> LaterLooks::take_due(Clock::time_point now) {
    if (due_.empty() || due_.begin()->first > now) return std::nullopt;
    const int pid = due_.begin()->second;
    auto& look = looks_.find(pid)->second;
    if (look.once <= now) look.once = never;
    // A process that was looked at late has not changed more often meanwhile.
    while (look.series <= now)
        look.series = ++look.next < series.size() ? look.begun + series[look.next] : never;
    place(pid, look);
    return pid;
}

namespace {

using host::ProcEvent;
using Kind = ThreadNews::Kind;

constexpr std::size_t most_news = 32; // of one process; more: it is looked at as a whole
constexpr std::size_t most_waiting = 16'384;
constexpr std::size_t most_due = 64; // that begin to wait at once, because their time has come
constexpr std::chrono::microseconds cost_of_event{2}; // to take it from the kernel
constexpr std::uint64_t many_events = 5000; // of a process between two passes: not worth listening to
constexpr std::size_t most_muted = 16, most_floods = 64;
constexpr std::chrono::seconds listed{3};         // after the last event that was left to a pass
constexpr std::chrono::seconds between_passes{2}; // while processes are left to them

bool is_end(const ProcEvent& event) { return event.kind == ProcEvent::Kind::exit && event.tid == event.pid; }

/// True for news of one thread that is not its process's main one.
bool is_of_thread(const ProcEvent& event) {
    return event.is_thread() && event.kind != ProcEvent::Kind::exec && event.kind != ProcEvent::Kind::ids;
}

/// The newest of a thread counts. A look at the whole process takes the place of all, if there are too many.
void add_thread(ProcessNews& process, const ProcEvent& event) {
    if (process.is_whole) return;
    const auto kind = event.kind == ProcEvent::Kind::exit   ? Kind::gone
                      : event.kind == ProcEvent::Kind::fork ? Kind::born
                                                            : Kind::renamed;
    std::erase_if(process.threads, [&](const ThreadNews& one) { return one.tid == event.tid; });
    process.threads.push_back({kind, event.tid, event.name});
    process.is_whole = process.threads.size() > most_news;
}

} // namespace

/// The person that pays for a process. Any user may have started a process that runs with root's rights; to
/// find who takes longer, so we look only while root's budget is low.
uid_t EventQueue::person(int pid, Clock::time_point now) {
    const auto owner = sources_.owner(pid);
    return owner == 0 && budget_.is_low(0, now) ? sources_.starter(pid) : owner;
}

ProcessNews* EventQueue::find_or_add(int pid, Clock::time_point now) {
    if (const auto found = entries_.find(pid); found != entries_.end()) return &found->second;
    const auto person = budget_.is_calm(now) ? std::nullopt : std::optional(this->person(pid, now));
    if ((person && budget_.is_spent(*person, now)) || entries_.size() >= most_waiting) {
        leave(pid, person.value_or(inventory::FactSources::gone), now);
        return nullptr;
    }
    auto& news = entries_.try_emplace(pid).first->second;
    news.pid = pid;
    news.person = person;
    waiting_.push_back(pid);
    return &news;
}

/// Finding the owner costs as much as all else that is done for an exec which no policy wants. While it
/// hardly matters who pays, one process in eight is charged, eightfold.
void EventQueue::charge(const ProcessNews& process, Clock::duration time, Clock::time_point now) {
    constexpr unsigned sampled = 8;
    time += process.events * cost_of_event;
    if (process.person)
        budget_.charge(*process.person, time, now);
    else if (++unpaid_ % sampled == 0)
        budget_.charge(person(process.pid, now), sampled * time, now);
}

void EventQueue::leave(int pid, uid_t person, Clock::time_point now) {
    left_out_ = true;
    if (left_.size() >= most_waiting) return;
    const auto [found, is_new] = left_.try_emplace(pid, Left{person, 0});
    count_left(pid, found->second, now);
}

void EventQueue::count_left(int pid, Left& left, Clock::time_point now) {
    budget_.charge(left.person, cost_of_event, now);
    if (++left.events == many_events && muted_.size() < most_muted)
        muted_.insert(std::ranges::lower_bound(muted_, pid), pid);
    if (floods_.size() >= most_floods)
        std::erase_if(floods_, [&](const auto& one) { return now - one.second.last > listed; });
    if (floods_.size() >= most_floods && !floods_.contains(left.person)) return;
    auto& flood = floods_[left.person];
    if (now - flood.last > listed) flood = {.begun = now};
    flood.last = now;
    ++flood.events;
    if (left.events < flood.most) return;
    flood.most = left.events;
    flood.pid = pid;
}

/// True for an event of a process that is left to the next pass.
bool EventQueue::goes_on_leaving(const ProcEvent& event, Clock::time_point now) {
    if (left_.empty()) return false;
    const auto found = left_.find(event.pid);
    if (found == left_.end()) return false;
    count_left(event.pid, found->second, now);
    if (is_end(event)) left_.erase(found); // the number may be another process's soon
    return true;
}

void EventQueue::begin_pass() {
    left_.clear();
    muted_.clear();
    left_out_ = false;
    for (auto& [person, flood] : floods_)
        flood.most = 0;
}

void EventQueue::add(const ProcEvent& event, bool all_children, Clock::time_point now) {
    const bool is_child = event.kind == ProcEvent::Kind::fork && !event.is_thread();
    const auto waits = [this](int pid) { return entries_.contains(pid) || left_.contains(pid); };
    // A parent that waits may be one that a policy wants.
    if (is_child && !is_known(event.parent_pid) && !waits(event.parent_pid)) {
        if (!all_children) return;
        // So far it is what its parent is.
        const auto payer = person(event.pid, now);
        if (budget_.is_spent(payer, now)) return leave(event.pid, payer, now);
        budget_.charge(payer, cost_of_event, now);
        return later_.begin_series(event.pid, now);
    }
    // Other threads of a process under policy may go on: the handling of the event finds out.
    if (is_end(event) && !is_known(event.pid)) later_.drop(event.pid);
    if (goes_on_leaving(event, now)) return;
    const bool is_of_process = !is_of_thread(event) && !is_end(event);
    // Threads of a process that no policy wants are of no interest; it is read as a whole if it waits.
    if (!is_of_process && !entries_.contains(event.pid) && !is_known(event.pid)) return;
    auto* news = find_or_add(event.pid, now);
    if (news == nullptr) return;
    if (news->events++ == 0) news->first = std::chrono::nanoseconds(event.at);
    news->has_changed |= is_of_process;
    news->is_whole |= is_of_process;
    news->has_lost_main |= is_end(event);
    news->is_executed |= event.kind == ProcEvent::Kind::exec;
    if (is_child && !news->creator) news->creator = event.parent_pid;
    if (is_of_thread(event)) add_thread(*news, event);
}

void EventQueue::release_due(Clock::time_point now) {
    for (std::size_t i = 0; i < most_due && later_.next_due() <= now; ++i) {
        const auto pid = later_.take_due(now);
        if (!pid) return;
        if (left_.contains(*pid)) continue;
        if (auto* news = find_or_add(*pid, now)) news->is_whole = true;
    }
}

std::optional<ProcessNews> EventQueue::next(Clock::time_point now) {
    release_due(now);
    while (!waiting_.empty()) {
        auto node = entries_.extract(waiting_.front());
        waiting_.pop_front();
        auto& news = node.mapped();
        if (!news.person || !budget_.is_spent(*news.person, now)) return std::move(news);
        leave(news.pid, *news.person, now);
    }
    return std::nullopt;
}

std::vector<status::FloodStatus> EventQueue::floods(Clock::time_point now) const {
    std::vector<status::FloodStatus> listed_floods;
    for (const auto& [person, flood] : floods_) {
        if (now - flood.last > listed) continue;
        const auto seconds = std::max(std::chrono::duration<double>(flood.last - flood.begun).count(), 1.0);
        listed_floods.push_back(
            {.pid = flood.pid,
             .uid = person,
             .events_a_minute = static_cast<std::uint64_t>(static_cast<double>(flood.events) / seconds * 60),
             .pause = between_passes,
             .is_muted = std::ranges::binary_search(muted_, flood.pid)});
    }
    std::ranges::sort(listed_floods, std::ranges::greater(), &status::FloodStatus::events_a_minute);
    return listed_floods;
}

} // namespace affinityd::core
