// SPDX-License-Identifier: Apache-2.0
#include "app/cpu_ledger.hpp"

#include <algorithm>
#include <functional>
#include <unordered_set>

namespace affinityd::app {

CpuLedger::Known& CpuLedger::know(const Entry& entry) {
    const auto [at, fresh] =
        known_.try_emplace(entry.id, Known{entry, entry.id.start_time > born_after_ ? 0 : entry.seconds});
    if (!fresh) {
        at->second.entry.parent = entry.parent;
        at->second.entry.seconds = std::max(at->second.entry.seconds, entry.seconds);
    }
    return at->second;
}

void CpuLedger::note(const Entry& entry) { know(entry).is_final = true; }

/// Numbers come again: of those with the parent's, the youngest that is not younger than its child.
CpuLedger::Known* CpuLedger::parent_of(const Entry& entry) {
    Known* found = nullptr;
    for (auto& [id, known] : known_)
        if (id.tid == entry.parent && id.start_time <= entry.id.start_time && id != entry.id &&
            (found == nullptr || id.start_time > found->entry.id.start_time))
            found = &known;
    return found;
}

/// In whose figures the time of one that ended is by now; null: in nobody's.
CpuLedger::Known* CpuLedger::heir_of(const Entry& entry) {
    constexpr int most_generations = 64;
    Known* known = parent_of(entry);
    for (int i = 0; known != nullptr && i < most_generations; ++i, known = parent_of(known->entry))
        if (known->lives || known->is_final) return known;
    return nullptr;
}

void CpuLedger::bury(Known& known) {
    if (auto* heir = heir_of(known.entry))
        heir->before += known.before;
    else
        ended_ += known.entry.seconds - known.before;
}

void CpuLedger::look(const std::vector<Entry>& living) {
    std::unordered_set<TaskId> here;
    for (const auto& entry : living) {
        know(entry).is_final = false; // one thread of it ended, if anything
        here.insert(entry.id);
    }
    std::vector<Known*> ended;
    for (auto& [id, known] : known_) {
        known.lives = here.contains(id);
        if (!known.lives) ended.push_back(&known);
    }
    // Children before their parents, who may inherit what has to be taken off before they go themselves.
    std::ranges::sort(ended, std::greater{}, [](const Known* known) {
        return std::pair(known->entry.id.start_time, known->entry.id.tid);
    });
    for (auto* known : ended)
        bury(*known);
    std::erase_if(known_, [](const auto& one) { return !one.second.lives; });
    double sum = ended_;
    for (const auto& [id, known] : known_)
        sum += known.entry.seconds - known.before;
    total_ = std::max(total_, sum);
}

} // namespace affinityd::app
