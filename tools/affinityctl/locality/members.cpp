// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/locality/members.hpp"

#include "inventory/pid_stream.hpp"
#include "inventory/process_scan.hpp"
#include "planner/condition.hpp"

#include <algorithm>

namespace affinityctl {

namespace inventory = affinityd::inventory;
using Kind = LocalitySubject::Kind;
using Clock = std::chrono::steady_clock;

Members::Members(const affinityd::host::Root& root, LocalitySubject subject,
                 std::function<nlohmann::json()> ask)
    : root_(&root), subject_(std::move(subject)), ask_(std::move(ask)) {
    if (subject_.kind == Kind::process) members_.insert(subject_.pid);
    if (subject_.kind == Kind::policy) ask_daemon();
}

void Members::ask_daemon() {
    asked_ = Clock::now();
    if (const auto pids = processes_under(ask_(), subject_.name)) members_.insert(pids->begin(), pids->end());
}

void Members::look_at(int pid) {
    const auto scan = inventory::ProcessScan::open(*root_, pid).value_or(std::nullopt);
    if (!scan) return;
    names_[pid] = scan->comm();
    if (subject_.kind != Kind::unit) return;
    const auto units = affinityd::planner::unit_names(scan->facts());
    if (std::ranges::find(units, subject_.name) != units.end()) members_.insert(pid);
}

void Members::look(const std::map<int, std::string>& readers, bool is_last) {
    bool has_new = is_last;
    for (const auto& [pid, name] : readers) {
        const bool is_new = !names_.contains(pid);
        has_new = has_new || is_new;
        if (is_new || is_last) look_at(pid); // at the end they may have another name
    }
    const bool may_ask = is_last || Clock::now() - asked_ >= std::chrono::seconds(1);
    if (subject_.kind == Kind::policy && has_new && may_ask) ask_daemon();
}

bool Members::contains(int pid) const {
    const bool is_any = subject_.kind == Kind::all || subject_.kind == Kind::nic;
    return is_any || members_.contains(pid);
}

bool Members::is_known(int pid) const {
    return contains(pid) || subject_.kind == Kind::process || names_.contains(pid);
}

std::string Members::name(int pid, const std::string& other) const {
    const auto found = names_.find(pid);
    return found == names_.end() ? other : found->second;
}

std::vector<int> Members::present() {
    if (subject_.kind == Kind::process) return {subject_.pid};
    if (subject_.kind == Kind::policy) {
        if (Clock::now() - asked_ >= std::chrono::seconds(1)) ask_daemon();
        return {members_.begin(), members_.end()};
    }
    auto pids = inventory::list_pids(*root_).value_or(std::vector<int>());
    if (subject_.kind == Kind::unit) {
        for (const int pid : pids)
            if (!names_.contains(pid)) look_at(pid);
        std::erase_if(pids, [&](int pid) { return !members_.contains(pid); });
    }
    return pids;
}

} // namespace affinityctl
