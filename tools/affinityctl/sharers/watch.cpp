// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/sharers/watch.hpp"

#include "inventory/process_files.hpp"
#include "planner/matcher.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace affinityctl {

using affinityd::Result;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
namespace inventory = affinityd::inventory;

namespace {

constexpr milliseconds between_glances{250};

/// The service that the machine's systemd runs the process in; "": none.
std::string service_of(const inventory::ProcessFacts& facts) {
    const auto units = affinityd::planner::unit_names(facts);
    const bool is_system = facts.cgroup().starts_with("/system.slice/");
    return is_system && !units.empty() && units.front().ends_with(".service") ? units.front() : "";
}

} // namespace

WatchedProcess watched_process(const inventory::ProcessScan& scan) {
    const auto unit = service_of(scan.facts());
    return {scan.id().tid, scan.comm(), unit, scan.comm(), unit};
}

bool look_again(const affinityd::host::Root& root, const affinityd::TaskId& id, WatchedProcess& process) {
    const auto scan = inventory::ProcessScan::open(root, id.tid);
    std::optional<WatchedProcess> now;
    if (scan && *scan && (*scan)->id() == id) now = watched_process(**scan);
    if (!inventory::lives_on(root, id)) return false; // afterwards: one that ends leaves its service at once
    if (!now) return true;
    process.name = std::move(now->name);
    process.unit = std::move(now->unit);
    return true;
}

Result<WakeWatch> WakeWatch::of(const affinityd::host::Root& root, int id) {
    const auto pid = inventory::read_process_id(root, id);
    auto scan =
        pid ? inventory::ProcessScan::open(root, *pid) : Result<std::optional<inventory::ProcessScan>>();
    if (!scan) return std::unexpected(scan.error());
    if (!*scan) return affinityd::fail("there is no process " + std::to_string(id), {}, ESRCH);
    WakeWatch watch(root, (*scan)->id());
    watch.process_ = watched_process(**scan);
    return watch;
}

Result<void> WakeWatch::begin() {
    auto events = EventWakes::open(*root_);
    if (!events) return std::unexpected(events.error());
    events_ = std::move(*events);
    look_at_threads();
    events_->watch(id_.tid);
    began_ = ended_ = Clock::now();
    return {};
}

void WakeWatch::look_at_threads() {
    // With its name: a script that executes the program itself is called otherwise when the watch begins, and
    // a policy by that name would mean every shell.
    has_ended_ = !look_again(*root_, id_, process_);
    if (has_ended_) return;
    auto threads = inventory::read_threads(*root_, id_.tid);
    if (threads && !threads->empty()) living_ = std::move(*threads);
}

void WakeWatch::run(milliseconds time, const std::function<bool(milliseconds)>& wait) {
    const auto end = began_ + time;
    for (auto now = Clock::now(); now < end; now = Clock::now()) {
        has_ended_ = !look_again(*root_, id_, process_);
        if (has_ended_ || wait(std::min(between_glances, std::chrono::ceil<milliseconds>(end - now)))) break;
    }
    events_->watch(0);
    ended_ = Clock::now();
}

Result<Wakes> WakeWatch::take() {
    auto wakes = events_->take();
    events_.reset();
    if (!wakes) return wakes;
    wakes->seconds = std::chrono::duration<double>(ended_ - began_).count();
    if (!has_ended_) look_at_threads();
    unsigned index = 0; // the main thread comes first, as policies count
    for (const auto& thread : living_) {
        auto& known = wakes->threads[thread.id];
        known.name = thread.comm;
        known.index = index++;
    }
    return wakes;
}

} // namespace affinityctl
