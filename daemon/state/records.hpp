// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "state/queue_records.hpp"
#include "state/thread_records.hpp"

#include <optional>
#include <string_view>

namespace affinityd::state {

/// Records of subjects of all kinds: one for each subject.
class Records {
  public:
    [[nodiscard]] std::optional<planner::UndoRecord> find(const machine::Subject& subject) const;
    /// The same without a copy.
    [[nodiscard]] bool contains(const machine::Subject& subject) const;
    /// Adds the record or replaces it.
    void put(const machine::Subject& subject, planner::UndoRecord record);
    void erase(const machine::Subject& subject);

    /// A place in a walk over all records. These may change between two steps: what is there during the whole
    /// walk is met once; what comes or goes meanwhile may be missed.
    struct Cursor {
        std::size_t thread = 0;
        std::size_t queue = 0;
    };
    /// The next record, tasks first; with `policy` only records on its behalf. No value: the end.
    [[nodiscard]] std::optional<Entry> next(Cursor& cursor,
                                            std::optional<std::string_view> policy = {}) const;
    [[nodiscard]] std::size_t size() const { return threads_.size() + queues_.size(); }

    [[nodiscard]] const ThreadRecords& threads() const { return threads_; }
    [[nodiscard]] const QueueRecords& queues() const { return queues_; }

  private:
    ThreadRecords threads_;
    QueueRecords queues_;
};

} // namespace affinityd::state
