// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "app/job.hpp"
#include "app/task_table.hpp"
#include "app/world.hpp"
#include "status/answer_text.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace affinityd::app {

/// Answers what is where: threads and queues one by one, then the rest.
class StatusJob final : public Job {
  public:
    /// References must outlive it.
    struct Parts {
        const Current& current;
        const TaskTable& tasks;
        /// No value: it has ended.
        std::function<std::optional<status::ProcessStatus>(const KnownProcess& process)> process;
        std::function<std::optional<status::ThreadStatus>(const KnownThread& thread, int pid)> thread;
        std::function<status::QueueStatus(const planner::QueueTarget& target)> queue;
        /// Adds everything else.
        std::function<OwnedText(status::AnswerText text)> complete;
    };
    StatusJob(Parts parts, OwnedAnswer answer) : parts_(std::move(parts)), answer_(std::move(answer)) {}
    bool step(const OutOfTime& out_of_time) override;

  private:
    /// The process that is told of now.
    struct Begun {
        TaskId id;
        uid_t owner;
        int next_tid = 0;
    };
    void list_processes();
    [[nodiscard]] bool add_process(int pid, const OutOfTime& out_of_time);
    Parts parts_;
    OwnedAnswer answer_;
    status::AnswerText text_;
    std::optional<std::vector<int>> pids_; ///< still to be told of, in descending order
    std::optional<Begun> begun_;           ///< the last of pids_
    /// Queues to be told of; a copy, as they may be worked out anew between two slices. No value: not yet.
    std::optional<std::vector<planner::QueueTarget>> targets_;
    std::size_t next_queue_ = 0; ///< of `targets_`
    bool is_listed_ = false;     ///< processes and queues are in the text
};

} // namespace affinityd::app
