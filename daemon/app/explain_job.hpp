// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/answer_basis.hpp"
#include "app/commands.hpp"
#include "app/job.hpp"
#include "app/tasks.hpp"
#include "status/answer_text.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

namespace affinityd::app {

/// Answers which policy wants a process, why, and where each of its threads belongs.
class ExplainJob final : public Job {
  public:
    /// References must outlive it.
    struct Parts {
        const host::Root& root;
        const Current& current;
        Tasks& tasks;
        const state::Journal& journal;
        const Releases& releases;
        /// Adds the fence of the process's unit, if it is under `means: cpuset`, and its listeners.
        std::function<void(const TaskId& process, status::ProcessExplanation& into)> add_rest;
    };
    ExplainJob(const Parts& parts, int pid, OwnedAnswer answer);
    bool step(const OutOfTime& out_of_time) override;

  private:
    using Clock = std::chrono::steady_clock;
    enum class Stage : std::uint8_t { consider, read, explain, send };
    [[nodiscard]] bool begin();
    [[nodiscard]] bool consider(const OutOfTime& out_of_time);
    [[nodiscard]] bool await_answer();
    [[nodiscard]] Result<bool> read(const OutOfTime& out_of_time);
    void explain(std::size_t index);
    [[nodiscard]] std::optional<policy::Position> decided_by(std::size_t index,
                                                             const planner::ThreadPlan& plan) const;

    Parts parts_;
    OwnedAnswer answer_;
    AnswerBasis basis_;
    status::ProcessExplanation value_;
    status::AnswerText text_;
    std::optional<inventory::ProcessScan> scan_;
    std::optional<std::size_t> policy_;
    std::vector<inventory::Thread> threads_;
    std::size_t next_ = 0; ///< of `threads_`
    Stage stage_ = Stage::consider;
    Clock::time_point until_{}; ///< for so long, it waits for what the process itself must answer
};

} // namespace affinityd::app
