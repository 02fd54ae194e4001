// SPDX-License-Identifier: Apache-2.0
#include "state/thread_records.hpp"

#include <algorithm>

namespace affinityd::state {

namespace {

std::uint32_t hash_of(const TaskId& id) { return mix_bits(std::hash<TaskId>{}(id)); }
std::uint32_t hash_of(int pid) { return mix_bits(static_cast<unsigned>(pid)); }

} // namespace

std::uint32_t ThreadRecords::slot_of(const TaskId& id) const {
    return by_id_.find(hash_of(id), [&](std::uint32_t slot) { return slots_[slot].id == id; });
}

std::uint32_t ThreadRecords::first_of(int pid) const {
    return by_process_.find(hash_of(pid), [&](std::uint32_t slot) { return slots_[slot].pid == pid; });
}

planner::UndoRecord ThreadRecords::record(const Slot& slot) const {
    return {masks_[slot.original], masks_[slot.asked], masks_[slot.granted], policies_[slot.policy]};
}

std::optional<planner::UndoRecord> ThreadRecords::find(const TaskId& id) const {
    const auto slot = slot_of(id);
    if (slot == none) return std::nullopt;
    return record(slots_[slot]);
}

std::uint32_t ThreadRecords::insert(const TaskId& id, int pid) {
    std::uint32_t at = free_;
    if (at != none) {
        free_ = slots_[at].after;
    } else {
        at = static_cast<std::uint32_t>(slots_.size());
        slots_.emplace_back();
    }
    Slot& slot = slots_[at] = Slot{};
    slot.id = id;
    slot.pid = pid;
    by_id_.insert(hash_of(id), at);
    // The first is what the table of processes knows, and the main thread if that has a record: any other
    // goes behind it.
    if (const auto first = first_of(pid); first != none && id.tid == pid) {
        slot.after = first;
        slots_[first].before = at;
        by_process_.erase(hash_of(pid), first);
        by_process_.insert(hash_of(pid), at);
    } else if (first != none) {
        slot.before = first;
        slot.after = slots_[first].after;
        slots_[first].after = at;
        if (slot.after != none) slots_[slot.after].before = at;
    } else {
        by_process_.insert(hash_of(pid), at);
    }
    return at;
}

void ThreadRecords::release(const Slot& slot) {
    for (const auto mask : {slot.original, slot.asked, slot.granted})
        masks_.release(mask);
    policies_.release(slot.policy);
}

void ThreadRecords::put(const machine::TaskMask& thread, const planner::UndoRecord& record) {
    if (thread.task.tid <= 0) return; // not a thread; 0 marks free slots
    std::uint32_t at = slot_of(thread.task);
    const bool is_new = at == none;
    if (is_new) at = insert(thread.task, thread.pid);
    Slot& slot = slots_[at];
    const Slot before = slot;
    slot.original = masks_.take(record.original.cpus());
    slot.asked = masks_.take(record.asked.cpus());
    slot.granted = masks_.take(record.granted.cpus());
    slot.policy = policies_.take(record.policy);
    if (!is_new) release(before); // after the new ones were taken, so that what is shared lives on
    slot.comm = {};
    std::copy_n(thread.comm.begin(), std::min(thread.comm.size(), slot.comm.size() - 1), slot.comm.begin());
}

bool ThreadRecords::erase(const TaskId& id) {
    const auto at = slot_of(id);
    if (at == none) return false;
    Slot& slot = slots_[at];
    release(slot);
    by_id_.erase(hash_of(id), at);
    if (slot.before == none) {
        by_process_.erase(hash_of(slot.pid), at);
        if (slot.after != none) by_process_.insert(hash_of(slot.pid), slot.after);
    } else {
        slots_[slot.before].after = slot.after;
    }
    if (slot.after != none) slots_[slot.after].before = slot.before;
    slot = Slot{};
    slot.after = free_;
    free_ = at;
    if (size() == 0) { // a crowd has left: give its memory back
        slots_ = {};
        free_ = none;
    }
    return true;
}

std::vector<TaskId> ThreadRecords::of(int pid) const {
    std::vector<TaskId> threads;
    for (auto at = first_of(pid); at != none; at = slots_[at].after)
        threads.push_back(slots_[at].id);
    return threads;
}

std::optional<TaskId> ThreadRecords::main_of(int pid) const {
    const auto first = first_of(pid);
    return first != none && slots_[first].id.tid == pid ? std::optional(slots_[first].id) : std::nullopt;
}

std::optional<int> ThreadRecords::process_of(const TaskId& id) const {
    const auto slot = slot_of(id);
    if (slot == none) return std::nullopt;
    return slots_[slot].pid;
}

Entry ThreadRecords::entry(std::size_t at) const {
    const Slot& slot = slots_[at];
    return {machine::TaskMask{slot.id, slot.pid, slot.comm.data()}, record(slot)};
}

/// Of each process, one slot is the first.
std::optional<int> ThreadRecords::next_process(std::size_t& slot) const {
    while (slot < slots_.size()) {
        const Slot& one = slots_[slot++];
        if (one.id.tid != 0 && one.before == none) return one.pid;
    }
    return std::nullopt;
}

} // namespace affinityd::state
