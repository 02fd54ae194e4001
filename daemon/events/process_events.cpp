// SPDX-License-Identifier: Apache-2.0
#include "events/process_events.hpp"

#include "base/clock.hpp"
#include "host/proc_connector.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

namespace affinityd::events {

namespace {

using host::ProcConnector;
using host::ProcEvent;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds slice{2};   ///< after which other work has its turn
constexpr std::chrono::milliseconds reading{1}; ///< of it, at most, for taking events from the kernel
constexpr unsigned takes_in_a_row = 16;         ///< after which other work has its turn, too
constexpr std::chrono::microseconds a_row{100}; ///< between two takes, at most: no other source had a turn
/// Before all others, for which sd-event looks once more after each event otherwise (sd_event_wait(3)).
constexpr std::int64_t ahead = std::numeric_limits<std::int64_t>::min();

ProcConnector::Wanted wanted_events(core::Daemon& manager) {
    ProcConnector::Wanted wanted;
    wanted.thread_forks = wanted.exits = wanted.thread_exits = !manager.tasks().table().processes().empty();
    const auto& matcher = manager.in_force().world->matcher();
    wanted.process_forks = wanted.exits || matcher.has_late_conditions();
    wanted.ids = matcher.asks_for_users();
    return wanted;
}

} // namespace

ProcessEvents::ProcessEvents(sd_event* event, core::Daemon& manager, core::Log& log)
    : manager_(manager), subscription_(event, log,
                                       {.what = "process events",
                                        .open = [this] { return open(); },
                                        .read = [this] { return take(); },
                                        .missed = [this] { manager_.events_lost(); },
                                        .priority = ahead}) {}

Result<std::unique_ptr<ProcessEvents>> ProcessEvents::start(sd_event* event, core::Daemon& manager,
                                                            core::Log& log) {
    auto events = std::make_unique<ProcessEvents>(event, manager, log);
    events->rest_.add_to(event, ahead);
    if (auto added = events->pause_.add_to(event); !added) return std::unexpected(added.error());
    if (auto begun = events->subscription_.start(); !begun) {
        log.warn("no process events, new processes are found by control groups and passes only: " +
                 begun.error().to_string());
        manager.tasks().events().set_absence(begun.error().to_string());
    }
    return events;
}

Result<int> ProcessEvents::open() {
    events_.reset();
    yield(false); // as the new source does
    auto muted = std::move(wanted_.muted);
    wanted_ = wanted_events(manager_);
    wanted_.muted = std::move(muted);
    auto opened = host::ProcConnector::open(wanted_);
    if (!opened) return std::unexpected(opened.error());
    events_ = std::move(*opened);
    return events_->fd();
}

bool ProcessEvents::waiting() const {
    return !queue().empty() || (events_ && !subscription_.is_broken() && events_->has_events());
}

void ProcessEvents::follow() {
    if (!queue().absence().empty()) return;
    if (!is_of_use()) {
        if (!std::exchange(is_paused_, true)) subscription_.pause();
        events_.reset();
        return;
    }
    if (std::exchange(is_paused_, false)) {
        subscription_.resume();
        manager_.work().want(core::Work::Urgency::soon); // for those that came while it opened
        return;
    }
    auto wanted = wanted_events(manager_);
    wanted.muted = wanted_.muted;
    if (wanted == wanted_) return;
    wanted_ = std::move(wanted);
    set_filter();
}

/// Without any policy no event matters, once all is put back.
bool ProcessEvents::is_of_use() const {
    return !manager_.in_force().world->policies().policies.empty() ||
           !manager_.tasks().table().processes().empty();
}

void ProcessEvents::set_filter() {
    if (!events_ || subscription_.is_broken()) return; // the new source is opened with it
    if (auto set = events_->set_filter(wanted_); !set) subscription_.break_off(set.error().to_string());
}

void ProcessEvents::handle(int pid, const core::ThreadNews& news) {
    using Kind = core::ThreadNews::Kind;
    auto& tasks = manager_.tasks();
    const std::string_view name(news.name.data(), news.name.size());
    switch (news.kind) {
    case Kind::born:
        return tasks.thread_changed(pid, news.tid);
    case Kind::renamed:
        return tasks.thread_renamed(pid, news.tid, name.substr(0, name.find('\0')));
    case Kind::gone:
        return tasks.task_gone(pid, news.tid);
    }
}

void ProcessEvents::handle(const core::ProcessNews& process) {
    auto& tasks = manager_.tasks();
    if (process.has_lost_main) tasks.task_gone(process.pid, process.pid);
    if (process.is_whole)
        tasks.process_changed(process.pid, {process.creator, process.has_changed, process.is_executed});
    else
        for (const auto& news : process.threads)
            handle(process.pid, news);
    if (!wanted_.exits && !tasks.table().processes().empty()) {
        follow();
        // Threads that the first process under policy made before births were reported: a pass finds them.
        manager_.work().want(core::Work::Urgency::soon);
    }
}

steady_clock::time_point ProcessEvents::work(steady_clock::time_point now, steady_clock::time_point end) {
    auto process = queue().next(now);
    if (!process) return steady_clock::now();
    for (auto begun = thread_time(); process; process = queue().next(now)) {
        const auto placed = manager_.tasks().placed();
        handle(*process);
        now = steady_clock::now();
        if (process->events > 0 && manager_.tasks().placed() != placed)
            queue().latencies().add(now.time_since_epoch() - process->first);
        const auto taken = thread_time();
        queue().charge(*process, taken - begun, now);
        begun = taken;
        if (now >= end) break;
    }
    return now;
}

/// Events that never end must leave turns to all other work.
void ProcessEvents::yield(bool others_first) {
    if (std::exchange(yields_, others_first) == others_first) return;
    const auto priority = others_first ? std::int64_t{SD_EVENT_PRIORITY_IDLE} : ahead;
    subscription_.set_priority(priority);
    rest_.set_priority(priority);
}

Result<void> ProcessEvents::take() {
    const auto begun = steady_clock::now();
    row_.takes = begun - row_.ended > a_row || row_.takes >= takes_in_a_row ? 1 : row_.takes + 1;
    const bool all_children = manager_.in_force().world->matcher().has_late_conditions();
    auto now = begun;
    const auto drained =
        events_->drain([&](const ProcEvent& event) { queue().add(event, all_children, now); },
                       [&] {
                           now = steady_clock::now();
                           return now >= begun + reading;
                       });
    if (drained.lost) manager_.events_lost();
    if (drained.error != 0) return fail(std::generic_category().message(drained.error));
    take_care_of_rest(drained.more, work(now, begun + slice));
    return {};
}

void ProcessEvents::take_care_of_rest(bool is_more, steady_clock::time_point now) {
    if (queue().take_left_out()) manager_.work().want(core::Work::Urgency::later);
    // Also after events that came just as fast as they were handled, so that no take left any.
    const bool is_turn_over = is_more || !queue().empty() || row_.takes >= takes_in_a_row;
    yield(is_turn_over);
    if (is_turn_over) rest_.arm();
    row_.ended = now;
    wait_for_due();
}

/// A pass that begins has ended all muting.
void ProcessEvents::mute() {
    if (queue().muted() == wanted_.muted) return;
    wanted_.muted = queue().muted();
    set_filter();
}

void ProcessEvents::wait_for_due() {
    mute();
    // Events in memory have their turn, after other work; a timer that has expired would always come first.
    if (!rest_.is_armed()) pause_.arm_at(queue().next_due());
}

void ProcessEvents::take_rest() {
    if (!events_ || subscription_.is_broken()) { // what has come before waits no longer than that
        const auto now = steady_clock::now();
        take_care_of_rest(false, work(now, now + slice));
        return;
    }
    if (const auto taken = take(); !taken) subscription_.break_off(taken.error().to_string());
}

} // namespace affinityd::events
