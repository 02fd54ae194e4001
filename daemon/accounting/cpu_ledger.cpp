// SPDX-License-Identifier: Apache-2.0
#include "accounting/cpu_ledger.hpp"

#include <algorithm>

namespace affinityd::accounting {

void CpuLedger::begin_look() {
    ++look_;
    sweep_ = {};
}

double CpuLedger::part(const Known& known) const { return known.entry.seconds - known.before; }

void CpuLedger::renew(Known& known) {
    if (known.period == period_) return;
    known.before = known.entry.seconds;
    known.period = period_;
}

CpuLedger::Known& CpuLedger::know(const Entry& entry) {
    const auto [at, is_new] = known_.try_emplace(entry.id);
    Known& known = at->second;
    if (is_new)
        known = {.entry = entry,
                 .before = entry.id.start_time > born_after_ ? 0 : entry.seconds,
                 .period = period_};
    else
        renew(known);
    const double before = is_new ? 0 : part(known);
    known.entry.parent = entry.parent;
    known.entry.seconds = std::max(known.entry.seconds, entry.seconds);
    counted_ += part(known) - before;
    return known;
}

void CpuLedger::see(const Entry& entry) {
    auto& known = know(entry);
    known.is_final = false; // if it was noted as ending, only one of its threads ended
    known.seen = look_;
}

void CpuLedger::note(const Entry& entry) { know(entry).is_final = true; }

/// Numbers are reused: of the processes with the parent's, the youngest that is not younger than its child.
CpuLedger::Known* CpuLedger::parent_of(const Entry& entry) {
    const auto after = known_.upper_bound({entry.parent, entry.id.start_time});
    if (after == known_.begin()) return nullptr;
    const auto found = std::prev(after);
    return found->first.tid == entry.parent && found->first != entry.id ? &found->second : nullptr;
}

/// The process whose figures hold the time of one that has ended; null: no process's do.
CpuLedger::Known* CpuLedger::payer_of(const Entry& entry) {
    constexpr int most_generations = 64;
    Known* known = parent_of(entry);
    for (int i = 0; known != nullptr && i < most_generations; ++i, known = parent_of(known->entry))
        if (known->seen == look_ || known->is_final) return known;
    return nullptr;
}

/// The part of one that has ended stays in the total if nobody waited for it. Otherwise the payer's own time
/// holds it already, and with it the time from before it counted, which must not count now.
void CpuLedger::settle(const TaskId& id) {
    const auto at = known_.find(id);
    if (at == known_.end() || at->second.seen == look_) return;
    Known& known = at->second;
    renew(known);
    if (Known* payer = payer_of(known.entry)) {
        renew(*payer);
        payer->before += known.before;
        counted_ -= part(known) + known.before;
    }
    known_.erase(at);
}

void CpuLedger::examine_next() {
    const auto at = sweep_.last ? known_.upper_bound(*sweep_.last) : known_.begin();
    if (at == known_.end()) {
        sweep_.is_examined = true;
        return;
    }
    sweep_.last = at->first;
    if (at->second.seen != look_) sweep_.ended.emplace(at->first.start_time, at->first.tid);
}

bool CpuLedger::finish_look(const std::function<bool()>& out_of_time) {
    while (!sweep_.is_examined) {
        examine_next();
        if (out_of_time()) return false;
    }
    // Children before their parents: a parent may have to pass on what a child left it.
    while (!sweep_.ended.empty()) {
        const auto [start_time, tid] = sweep_.ended.top();
        sweep_.ended.pop();
        settle({tid, start_time});
        if (out_of_time() && !sweep_.ended.empty()) return false;
    }
    total_ = std::max(total_, counted_);
    return true;
}

void CpuLedger::restart(std::uint64_t born_after) {
    born_after_ = born_after;
    ++period_;
    counted_ = 0;
    total_ = 0;
}

} // namespace affinityd::accounting
