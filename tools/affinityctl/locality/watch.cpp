// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/locality/watch.hpp"

#include "base/text.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/process_files.hpp"
#include "inventory/process_scan.hpp"
#include "planner/matcher.hpp"

#include <algorithm>
#include <cstring>

namespace affinityctl {

namespace locality = affinityd::locality;

using affinityd::Result;
using Clock = std::chrono::steady_clock;
using Kind = LocalitySubject::Kind;
using std::chrono::milliseconds;

namespace {
constexpr milliseconds between_looks{250};
} // namespace

LocalityWatch::LocalityWatch(const affinityd::host::Root& root, const LocalitySubject& subject,
                             std::function<nlohmann::json()> ask)
    : root_(&root), subject_(subject), members_(root, subject, std::move(ask)) {}

Result<void> LocalityWatch::begin(bool with_others) {
    auto events = affinityd::steer::Reads::open(*root_, {.with_others = with_others});
    began_ = Clock::now();
    if (!events) return std::unexpected(std::move(events.error()));
    events_ = std::move(*events);
    return {};
}

bool LocalityWatch::has_ended() const {
    return subject_.kind == Kind::process && !affinityd::inventory::read_process_id(*root_, subject_.pid);
}

void LocalityWatch::run(milliseconds time, const std::function<bool(milliseconds)>& wait) {
    const auto end = began_ + time;
    for (auto now = Clock::now(); now < end; now = Clock::now()) {
        if (auto readers = events_->readers()) readers_ = std::move(*readers);
        members_.look(readers_, false);
        if (has_ended()) return;
        const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
        if (wait(std::clamp(between_looks, milliseconds(0), std::max(left, milliseconds(0))))) return;
    }
}

Result<locality::ReadCounts> LocalityWatch::take() {
    locality::ReadCounts seen{.has_other_protocols = events_->has_other_protocols()};
    if (const auto done = events_->take(seen); !done) return std::unexpected(done.error());
    if (subject_.kind == Kind::nic)
        std::erase_if(seen.counts,
                      [&, here = affinityd::inventory::name_space(*root_, "self", "net")](const auto& count) {
                          return count.network_space != here ||
                                 std::ranges::find(subject_.devices, count.device) == subject_.devices.end();
                      });
    seen.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    if (auto readers = events_->readers()) readers_ = std::move(*readers);
    events_.reset();
    for (const auto& count : seen.counts)
        readers_.try_emplace(count.pid, ""); // there may be more than the table of names has room for
    members_.look(readers_, true);
    for (const auto& [pid, name] : readers_)
        seen.names[pid] = members_.name(pid, name);
    for (const auto& count : seen.counts)
        if (!members_.is_known(count.pid)) seen.of_unknown += count.reads;
    if (subject_.kind != Kind::all) seen.in_softirq = 0; // whose it was is not known
    if (has_ended()) seen.notes.push_back("The process has ended meanwhile.");
    return seen;
}

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

} // namespace affinityctl
