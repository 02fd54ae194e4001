// SPDX-License-Identifier: Apache-2.0
#include "app/settling.hpp"

#include "app/lineage.hpp"
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
    if (!facts.is_unfinished() && !world.matcher().may_want_later(facts, lineage, policy))
        later_.end_series(pid);
    else if (has_changed)
        later_.begin_series(pid, sources_.owner(pid), Clock::now());
}

} // namespace affinityd::app
