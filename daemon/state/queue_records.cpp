// SPDX-License-Identifier: Apache-2.0
#include "state/queue_records.hpp"

#include "state/place.hpp"

#include <utility>

namespace affinityd::state {

namespace {

/// The device that a subject belongs to.
struct DeviceOf {
    std::string_view operator()(const machine::TaskMask&) const { return {}; }
    std::string_view operator()(const machine::UnitCpuset&) const { return {}; }
    std::string_view operator()(const auto& queue) const { return queue.device; }
};

} // namespace

const Entry* QueueRecords::find_entry(const machine::Subject& subject) const {
    const auto found = by_subject_.find(subject);
    return found == by_subject_.end() ? nullptr : entry(found->second);
}

const planner::UndoRecord* QueueRecords::find(const machine::Subject& subject) const {
    const auto* found = find_entry(subject);
    return found == nullptr ? nullptr : &found->record;
}

void QueueRecords::put(const machine::Subject& subject, planner::UndoRecord record) {
    const auto [at, is_new] = by_subject_.try_emplace(subject, slots_.size());
    if (is_new && !free_.empty()) {
        at->second = free_.back();
        free_.pop_back();
    } else if (is_new) {
        slots_.emplace_back();
    }
    leave_place(at->second);
    slots_[at->second] = Entry{subject, std::move(record)};
    if (auto place = place_of(subject); !place.empty())
        by_place_.insert_or_assign(std::move(place), at->second);
}

const Entry* QueueRecords::find_at_place_of(const machine::Subject& subject) const {
    if (by_place_.empty()) return nullptr;
    const auto found = by_place_.find(place_of(subject));
    return found == by_place_.end() ? nullptr : entry(found->second);
}

void QueueRecords::leave_place(std::size_t slot) {
    if (!slots_[slot]) return;
    const auto found = by_place_.find(place_of(slots_[slot]->subject));
    if (found != by_place_.end() && found->second == slot) by_place_.erase(found);
}

void QueueRecords::erase(const machine::Subject& subject) {
    const auto found = by_subject_.find(subject);
    if (found == by_subject_.end()) return;
    leave_place(found->second);
    slots_[found->second].reset();
    free_.push_back(found->second);
    by_subject_.erase(found);
}

std::vector<Entry> QueueRecords::all(std::optional<std::string_view> device) const {
    std::vector<Entry> found;
    for (const auto& slot : slots_)
        if (slot && (!device || std::visit(DeviceOf{}, slot->subject) == *device)) found.push_back(*slot);
    return found;
}

} // namespace affinityd::state
