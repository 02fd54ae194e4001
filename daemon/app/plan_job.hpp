// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/answer_basis.hpp"
#include "app/commands.hpp"
#include "app/job.hpp"
#include "app/queues.hpp"
#include "app/tasks.hpp"
#include "inventory/descriptors.hpp"
#include "status/answer_text.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace affinityd::app {

/// Answers what the next pass would do, by the pass's own matching and planning.
class PlanJob final : public Job {
  public:
    /// References must outlive it.
    struct Parts {
        const host::Root& root;
        const Current& current;
        Tasks& tasks;
        Queues& queues;
    };
    PlanJob(const Parts& parts, OwnedAnswer answer);
    bool step(const OutOfTime& out_of_time) override;

  private:
    /// The process that is planned now.
    struct Looking {
        inventory::ProcessScan scan;
        std::optional<std::size_t> policy{}; ///< that wants it
        std::vector<inventory::Thread> threads{};
        std::size_t next = 0; ///< of `threads`
        bool is_read = false;
    };
    [[nodiscard]] bool step_tasks(const OutOfTime& out_of_time);
    [[nodiscard]] bool step_queues(const OutOfTime& out_of_time);
    void begin(int pid);
    [[nodiscard]] bool decide(Looking& looking);
    [[nodiscard]] bool plan(Looking& looking, const OutOfTime& out_of_time);

    Parts parts_;
    OwnedAnswer answer_;
    AnswerBasis basis_;
    status::AnswerText text_;
    std::optional<inventory::PidStream> pids_;
    std::optional<Looking> looking_;
    std::optional<std::vector<planner::QueueTarget>> targets_; ///< no value: it has not come to queues
    std::size_t next_queue_ = 0;                               ///< of `targets_`
    std::optional<std::vector<planner::Subject>> unwanted_;    ///< queues that go back to their originals
    bool is_listed_ = false;                                   ///< tasks and queues are in the text
};

} // namespace affinityd::app
