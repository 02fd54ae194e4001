// SPDX-License-Identifier: Apache-2.0
#include "state/records.hpp"

#include <utility>

namespace affinityd::state {

using machine::TaskMask;

std::optional<planner::UndoRecord> Records::find(const machine::Subject& subject) const {
    if (const auto* task = std::get_if<TaskMask>(&subject)) return threads_.find(task->task);
    const auto* record = queues_.find(subject);
    return record == nullptr ? std::nullopt : std::optional(*record);
}

bool Records::contains(const machine::Subject& subject) const {
    const auto* task = std::get_if<TaskMask>(&subject);
    return task != nullptr ? threads_.contains(task->task) : queues_.find(subject) != nullptr;
}

void Records::put(const machine::Subject& subject, planner::UndoRecord record) {
    if (const auto* task = std::get_if<TaskMask>(&subject))
        threads_.put(*task, record);
    else
        queues_.put(subject, std::move(record));
}

void Records::erase(const machine::Subject& subject) {
    if (const auto* task = std::get_if<TaskMask>(&subject))
        threads_.erase(task->task);
    else
        queues_.erase(subject);
}

std::optional<Entry> Records::next(Cursor& cursor, std::optional<std::string_view> policy) const {
    while (cursor.thread < threads_.slots()) {
        const auto at = cursor.thread++;
        if (threads_.is_used(at) && (!policy || threads_.policy(at) == *policy)) return threads_.entry(at);
    }
    while (cursor.queue < queues_.slots()) {
        const auto* entry = queues_.entry(cursor.queue++);
        if (entry != nullptr && (!policy || entry->record.policy == *policy)) return *entry;
    }
    return std::nullopt;
}

} // namespace affinityd::state
