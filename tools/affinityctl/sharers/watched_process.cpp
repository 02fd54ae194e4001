// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/sharers/watched_process.hpp"

#include "inventory/process_files.hpp"
#include "planner/matcher.hpp"

#include <utility>

namespace affinityctl {

namespace inventory = affinityd::inventory;

namespace {

/// The service that the machine's systemd runs the process in; "": none.
std::string service_of(const inventory::ProcessFacts& facts) {
    const auto units = affinityd::planner::unit_names(facts);
    const bool is_system = facts.cgroup().starts_with("/system.slice/");
    return is_system && !units.empty() && units.front().ends_with(".service") ? units.front() : "";
}

/// One that is again what it was at first has no former value.
void take(std::string now, std::string& known, std::optional<std::string>& former) {
    if (!former) former = known;
    known = std::move(now);
    if (former == known) former.reset();
}

} // namespace

WatchedProcess watched_process(const inventory::ProcessScan& scan) {
    return {scan.id().tid, scan.comm(), service_of(scan.facts())};
}

bool look_again(const affinityd::host::Root& root, const affinityd::TaskId& id, WatchedProcess& process) {
    const auto scan = inventory::ProcessScan::open(root, id.tid);
    std::optional<WatchedProcess> now;
    if (scan && *scan && (*scan)->id() == id) now = watched_process(**scan);
    if (!inventory::lives_on(root, id)) return false; // afterwards: one that ends leaves its service at once
    if (!now) return true;
    take(std::move(now->name), process.name, process.former_name);
    take(std::move(now->unit), process.unit, process.former_unit);
    return true;
}

} // namespace affinityctl
