// SPDX-License-Identifier: Apache-2.0
#include "app/task_events.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace affinityd::app {

namespace {

using std::chrono::milliseconds;

/// Most programs have done it at the first; the distances grow with the time that has passed.
constexpr std::array series{milliseconds(100),  milliseconds(200),  milliseconds(400),  milliseconds(600),
                            milliseconds(800),  milliseconds(1000), milliseconds(1500), milliseconds(2000),
                            milliseconds(3000), milliseconds(5000)};
constexpr std::size_t most_looks_of_user = 4096, most_looks = 16'384;

} // namespace

LaterLooks::Look* LaterLooks::find_or_add(int pid, uid_t user) {
    if (const auto found = looks_.find(pid); found != looks_.end()) return &found->second;
    if (looks_.size() >= most_looks) return nullptr;
    auto& count = of_users_[user];
    if (count >= most_looks_of_user) return nullptr;
    ++count;
    auto& look = looks_.try_emplace(pid).first->second;
    look.user = user;
    look.place = due_.emplace(never, pid);
    return &look;
}

/// Where its next time is, among all; it has none: it is forgotten.
void LaterLooks::place(int pid, Look& look) {
    const auto when = std::min(look.series, look.once);
    if (when == never) return forget(pid);
    if (look.place->first == when) return;
    due_.erase(look.place);
    look.place = due_.emplace(when, pid);
}

void LaterLooks::begin_series(int pid, uid_t user, Clock::time_point now) {
    auto* look = find_or_add(pid, user);
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

void LaterLooks::look_at(int pid, uid_t user, Clock::time_point when) {
    auto* look = find_or_add(pid, user);
    if (look == nullptr) return;
    look->once = when;
    place(pid, *look);
}

void LaterLooks::forget(int pid) {
    const auto found = looks_.find(pid);
    if (found == looks_.end()) return;
    const auto of = of_users_.find(found->second.user);
    if (--of->second == 0) of_users_.erase(of);
    due_.erase(found->second.place);
    looks_.erase(found);
}

std::optional<LaterLooks::Due> LaterLooks::take_due(Clock::time_point now) {
    if (due_.empty() || due_.begin()->first > now) return std::nullopt;
    const int pid = due_.begin()->second;
    auto& look = looks_.find(pid)->second;
    const Due due{pid, look.user};
    if (look.once <= now) look.once = never;
    // A process that was looked at late has not changed more often meanwhile.
    while (look.series <= now)
        look.series = ++look.next < series.size() ? look.begun + series[look.next] : never;
    place(pid, look);
    return due;
}

namespace {

using host::ProcEvent;
using Kind = TaskNews::Kind;

constexpr std::size_t most_news = 32; // of one process; more: it is looked at as a whole
constexpr std::size_t most_waiting = 16'384;
constexpr std::size_t most_due = 64; // that begin to wait at once, because their time has come
constexpr std::chrono::microseconds cost_of_event{2}; // to take it from the kernel
constexpr std::uint64_t many_events = 5000; // of a process between two passes: not worth listening to
constexpr std::size_t most_muted = 16, most_floods = 64;
constexpr std::chrono::seconds listed{3};         // after the last event that was left to a pass
constexpr std::chrono::seconds between_passes{2}; // while processes are left to them

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
        // A process that was born and has ended meanwhile needs no look.
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

ProcessNews* EventQueue::find_or_add(int pid, uid_t person, Clock::time_point now) {
    if (const auto found = entries_.find(pid); found != entries_.end()) return &found->second;
    if (budget_.is_spent(person, now) || entries_.size() >= most_waiting) {
        leave(pid, person, now);
        return nullptr;
    }
    auto& news = entries_.try_emplace(pid).first->second;
    news.pid = pid;
    news.person = person;
    waiting_.push_back(pid);
    return &news;
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

void EventQueue::add(const ProcEvent& event, const Asked& asked, Clock::time_point now) {
    const auto kind = kind_of(event);
    const bool is_child = event.kind == ProcEvent::Kind::fork && !event.is_thread();
    const auto waits = [this](int pid) { return entries_.contains(pid) || left_.contains(pid); };
    // A parent that waits may be one that a policy wants.
    if (is_child && !asked.is_known(event.parent_pid) && !waits(event.parent_pid)) {
        if (!asked.all_children) return;
        // So far it is what its parent is.
        const auto person = asked.person(event.pid);
        if (budget_.is_spent(person, now)) return leave(event.pid, person, now);
        budget_.charge(person, cost_of_event, now);
        return later_.begin_series(event.pid, person, now);
    }
    // Other threads of a process under policy may go on: the handling of the event finds out.
    if (is_end(event) && !asked.is_known(event.pid)) later_.forget(event.pid);
    if (goes_on_leaving(event, now)) return;
    const auto found = entries_.find(event.pid);
    // Threads of a process that no policy wants are of no interest; it is read as a whole if it waits.
    if (kind != Kind::process && found == entries_.end() && !asked.is_known(event.pid)) return;
    auto* news =
        found != entries_.end() ? &found->second : find_or_add(event.pid, asked.person(event.pid), now);
    if (news == nullptr) return;
    budget_.charge(news->person, cost_of_event, now);
    news->has_changed |= kind == Kind::process;
    news->is_executed |= event.kind == ProcEvent::Kind::exec;
    if (is_child && !news->creator) news->creator = event.parent_pid;
    add_news(*news, kind, event);
}

void EventQueue::release_due(Clock::time_point now) {
    for (std::size_t i = 0; i < most_due && later_.next_due() <= now; ++i) {
        const auto due = later_.take_due(now);
        if (!due) return;
        if (left_.contains(due->pid)) continue;
        if (auto* news = find_or_add(due->pid, due->user, now)) add_process(*news);
    }
}

std::optional<ProcessNews> EventQueue::next(Clock::time_point now) {
    release_due(now);
    while (!waiting_.empty()) {
        auto node = entries_.extract(waiting_.front());
        waiting_.pop_front();
        auto& news = node.mapped();
        if (!budget_.is_spent(news.person, now)) return std::move(news);
        leave(news.pid, news.person, now);
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

} // namespace affinityd::app
