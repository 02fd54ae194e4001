// SPDX-License-Identifier: Apache-2.0
// When Tasks looks at a process again although no event names it.
#include "app/lineage.hpp"
#include "app/tasks.hpp"
#include "host/boot_clock.hpp"
#include "host/root.hpp"

#include <algorithm>

namespace affinityd::app {

namespace {

using Clock = LaterLooks::Clock;
using std::chrono::milliseconds;

milliseconds age(const TaskId& process) {
    const auto now = host::ticks_since_boot();
    const auto ticks = now > process.start_time ? now - process.start_time : 0;
    return milliseconds(ticks * 1000 / host::ticks_a_second());
}

} // namespace

uid_t Tasks::person(int pid) {
    return sources_.person(parts_.root.proc().owner(std::to_string(pid)).value_or(0));
}

/// A process that is new to its policy, or runs another program, begins to settle; one whose time has come
/// has settled. Who was there long before the daemon has settled, too.
void Tasks::settle(KnownProcess& process, bool is_new, bool is_executed) {
    const auto now = Clock::now();
    if (!is_new && !is_executed) {
        if (process.settling && process.settling->due <= now) process.settling.reset();
        return;
    }
    process.settling.reset();
    const milliseconds whole = parts_.current->policy(process.policy).settle;
    const auto left = is_executed ? whole : whole - std::min(whole, age(process.id));
    if (left == milliseconds::zero() || !parts_.root.is_live()) return;
    process.settling = {now + left, now + left};
    events_.later().look_at(process.id.tid, person(process.id.tid), now + left);
}

/// It has several threads: it has settled when it has made no more for a quarter of the time.
void Tasks::settle_soon(KnownProcess& process) {
    if (!process.settling) return;
    auto& [until, due] = *process.settling;
    due = std::min(until, Clock::now() + parts_.current->policy(process.policy).settle / 4);
    events_.later().look_at(process.id.tid, person(process.id.tid), due);
}

/// What it does next may bring it under another policy without an event.
void Tasks::look_later(const inventory::ProcessFacts& facts, std::optional<std::size_t> policy,
                       bool has_changed) {
    const auto& world = *parts_.current.world;
    if (!world.matcher().has_late_conditions()) return;
    const int pid = facts.id().tid;
    const bool may_change =
        facts.is_unfinished() ||
        world.matcher().may_want_later(facts, ProcessLineage(parts_.root, table_, world.policies()), policy);
    if (!may_change)
        events_.later().end_series(pid);
    else if (has_changed)
        events_.later().begin_series(pid, person(pid), Clock::now());
}

} // namespace affinityd::app
