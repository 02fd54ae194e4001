// SPDX-License-Identifier: Apache-2.0
#include "app/local_reads.hpp"

#include "inventory/process_files.hpp"
#include "locality/arrivals.hpp"
#include "locality/figures.hpp"
#include "status/json.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace affinityd::app {

bool LocalReads::step(const OutOfTime& out_of_time) {
    if (!next_) {
        near_.emplace(parts_.current->machine().topology);
        next_.emplace();
    }
    for (auto at = policies_.lower_bound(*next_); at != policies_.end();) {
        renew(at->first, at->second);
        at = at->second.all == 0 ? policies_.erase(at) : std::next(at);
        if (at == policies_.end() || !out_of_time()) continue;
        next_ = at->first;
        return false;
    }
    next_.reset();
    return true;
}

void LocalReads::note(const locality::ReadCounts& found) {
    for (const auto& count : found.counts) {
        const auto* process = parts_.tasks.find(count.pid);
        if (process == nullptr) continue; // it has ended, or left its policy
        auto& seen = policies_[parts_.current->policy(process->policy).name];
        const auto [owner, is_first] = seen.owners.try_emplace(count.pid);
        if (!is_first && owner->second.id != process->id)
            seen.drop([&](int pid) { return pid == count.pid; });
        owner->second = {process->id, process->comm};
        seen.reads[{count.pid, count.network_space, count.napi, count.arrival, count.reader}] += count.reads;
        seen.all += count.reads;
        seen.is_new = true;
    }
    for (auto& [name, seen] : policies_)
        while (seen.all > most_reads) {
            seen.all = 0;
            for (auto& [pair, reads] : seen.reads)
                seen.all += reads /= 2;
            std::erase_if(seen.reads, [](const auto& one) { return one.second == 0; });
        }
}

/// Without processes that have ended, or left the policy.
void LocalReads::renew(const std::string& policy, Seen& seen) {
    const auto is_gone = [&](int pid, const TaskId& id) {
        const auto* process = parts_.tasks.find(pid);
        return process == nullptr || process->id != id ||
               parts_.current->policy(process->policy).name != policy;
    };
    const auto before = seen.all;
    seen.drop([&](int pid) { return is_gone(pid, seen.owners.at(pid).id); });
    std::erase_if(seen.owners, [&](const auto& one) { return is_gone(one.first, one.second.id); });
    if (!seen.is_new && seen.all == before) return;
    seen.is_new = false;
    const auto figures = locality::figures_of(counts_of(seen), *near_, [](int) { return true; }).total;
    seen.figures.reset();
    if (figures.reads - figures.unknown >= enough)
        seen.figures = status::LocalStatus{figures.reads, figures.unknown, figures.same, figures.chance};
}

locality::ReadCounts LocalReads::counts_of(const Seen& seen) {
    locality::ReadCounts found;
    for (const auto& [pid, owner] : seen.owners)
        found.names.emplace(pid, owner.comm);
    for (const auto& [pair, reads] : seen.reads)
        found.counts.push_back({.pid = pair.pid,
                                .network_space = pair.network_space,
                                .napi = pair.napi,
                                .arrival = pair.arrival,
                                .reader = pair.reader,
                                .reads = reads});
    return found;
}

void LocalReads::Seen::drop(const std::function<bool(int pid)>& is_meant) {
    std::erase_if(reads, [&](const auto& one) {
        const bool meant = is_meant(one.first.pid);
        if (meant) all -= one.second;
        return meant;
    });
}

std::optional<status::LocalStatus> LocalReads::of_policy(std::string_view policy) const {
    const auto found = policies_.find(policy);
    return found == policies_.end() ? std::nullopt : found->second.figures;
}

void LocalReads::explain(const TaskId& process, status::ProcessExplanation& into) const {
    const auto* known = parts_.tasks.find(process.tid);
    if (known == nullptr || known->id != process || !near_) return;
    const auto found = policies_.find(parts_.current->policy(known->policy).name);
    if (found == policies_.end()) return;
    const auto is_meant = [&](int pid) { return pid == process.tid; };
    const auto counts = counts_of(found->second);
    const auto& machine = parts_.current->machine();
    const auto figures = locality::figures_of(counts, *near_, is_meant).total;
    if (figures.reads == 0) return;
    into.receiving.local = status::LocalStatus{figures.reads, figures.unknown, figures.same, figures.chance};
    into.receiving.arrivals = locality::arrival_places(
        counts.counts, machine, inventory::name_space(parts_.root, "self", "net"), is_meant);
}

bool LocalReads::is_worth_keeping(const Seen& seen, Clock::time_point now) {
    if (!seen.figures || now - seen.kept < between_records) return false;
    return std::abs(seen.figures->same.core - seen.kept_core) >= 0.05 ||
           now - seen.kept >= longest_between_records;
}

std::optional<state::MeasurementRecord> LocalReads::take_record(Clock::time_point now, std::int64_t time) {
    for (auto& [name, seen] : policies_) {
        const auto* resolved = parts_.current.placements().find(name);
        if (resolved == nullptr || !is_worth_keeping(seen, now)) continue;
        seen.kept = now;
        seen.kept_core = seen.figures->same.core;
        state::MeasurementRecord record;
        record.time = time;
        record.kind = "locality";
        record.outcome = "done";
        record.model = to_string(resolved->policy->model);
        record.policies = name;
        record.reason = status::to_string(*seen.figures);
        record.detail = status::to_text(*seen.figures);
        return record;
    }
    return std::nullopt;
}

} // namespace affinityd::app
