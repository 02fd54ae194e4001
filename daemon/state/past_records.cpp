// SPDX-License-Identifier: Apache-2.0
#include "state/past_records.hpp"

#include <utility>

namespace affinityd::state {

namespace {

bool is_task(const machine::Subject& subject) { return std::holds_alternative<machine::TaskMask>(subject); }

/// The next record of the same kind as `subject`, in turn.
std::optional<machine::Subject> next_in_turn(const Records& records, Records::Cursor& hand,
                                             const machine::Subject& subject) {
    for (int round = 0; round < 2; ++round) {
        auto at = hand;
        if (!is_task(subject)) at.thread = records.threads().slots();
        const auto entry = records.next(at);
        if (entry && is_task(entry->subject) == is_task(subject)) {
            (is_task(subject) ? hand.thread : hand.queue) = is_task(subject) ? at.thread : at.queue;
            return entry->subject;
        }
        (is_task(subject) ? hand.thread : hand.queue) = 0;
    }
    return std::nullopt;
}

} // namespace

std::optional<PastRecords::Past> PastRecords::find(const machine::Subject& subject) const {
    if (size() == 0) return std::nullopt;
    if (auto record = kept_.find(subject)) return Past{std::move(*record), Parting::kept};
    if (auto record = put_back_.find(subject)) return Past{std::move(*record), Parting::put_back};
    return std::nullopt;
}

std::optional<machine::Subject> PastRecords::put(const machine::Subject& subject, planner::UndoRecord record,
                                                 Parting parting) {
    erase(subject);
    auto& records = of(parting);
    const auto size = is_task(subject) ? records.threads().size() : records.queues().size();
    std::optional<machine::Subject> surplus;
    if (size >= (parting == Parting::kept ? most_kept : most_put_back))
        surplus = next_in_turn(records, parting == Parting::kept ? hand_kept_ : hand_put_back_, subject);
    records.put(subject, std::move(record));
    return surplus;
}

void PastRecords::erase(const machine::Subject& subject) {
    if (size() == 0) return;
    kept_.erase(subject);
    put_back_.erase(subject);
}

std::optional<PastRecords::Found> PastRecords::next(Cursor& cursor) const {
    if (auto entry = kept_.next(cursor.kept)) return Found{std::move(*entry), Parting::kept};
    if (auto entry = put_back_.next(cursor.put_back)) return Found{std::move(*entry), Parting::put_back};
    return std::nullopt;
}

} // namespace affinityd::state
