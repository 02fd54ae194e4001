// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/coexistence.hpp"
#include "app/commands.hpp"
#include "app/load.hpp"
#include "app/log.hpp"
#include "app/queues.hpp"
#include "app/steering.hpp"
#include "app/task_events.hpp"
#include "app/task_status.hpp"
#include "app/task_table.hpp"
#include "app/tasks.hpp"
#include "app/units.hpp"
#include "app/work.hpp"
#include "base/error.hpp"
#include "enforcer/executor.hpp"
#include "host/root.hpp"
#include "inventory/command_lines.hpp"
#include "inventory/descriptors.hpp"
#include "planner/action.hpp"
#include "planner/assignments.hpp"
#include "state/journal.hpp"
#include "status/answer_text.hpp"
#include "status/status.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace affinityd::app {

// Processes whose arguments cannot be read. `lines` may be null.

/// Logs each once.
void log_silent(inventory::CommandLines* lines, Log& log);
/// All of them, for `status`.
[[nodiscard]] std::vector<planner::Problem> silence_problems(const inventory::CommandLines* lines);

// What people are told where it is not known which interfaces serve a process, though its policy goes by
// them.

/// Of one process; "": they are known, or do not matter.
[[nodiscard]] std::string nic_note(const World& world, const KnownProcess& process);
/// Of a policy with this many processes; "": there is nothing to say.
[[nodiscard]] std::string nic_note(const World& world, std::size_t policy, std::size_t processes);
/// Policies with processes in other network namespaces, or in cpusets without the CPUs near the NICs.
[[nodiscard]] std::vector<planner::Problem> nic_problems(const World& world, const TaskTable& tasks);

/// True if no process of the policy is known.
[[nodiscard]] bool is_idle(const World& world, const TaskTable& tasks, std::string_view policy);

/// Says that no process of the policy was ever seen, or that its tasks had CPUs of their own (CPUAffinity= of
/// their unit, taskset), which it replaced; "": neither. To be asked once all processes have been seen.
[[nodiscard]] std::string match_note(const World& world, const TaskTable& tasks,
                                     const state::Journal& journal, std::size_t policy);

/// Policies that keep everybody off their CPUs, while none of their own programs runs. To be asked once all
/// processes have been seen.
[[nodiscard]] std::vector<planner::Problem> idle_claims(const World& world, const TaskTable& tasks);

/// Why no policy places an interrupt, named as irq:NUMBER or by its label. An Error: it does not exist. No
/// value: that is no name of an interrupt.
[[nodiscard]] std::optional<Result<std::string>> interrupt_note(const host::Root& root, const World& world,
                                                                const std::string& subject);

// What status says, gathered from those who know it.

/// Every policy with what it holds.
[[nodiscard]] std::vector<status::PolicyStatus> policy_status(const World& world, const Holdings& holdings,
                                                              const enforcer::Executor& executor,
                                                              const Releases& releases,
                                                              const Steering& steering);

/// Refusals and outcomes.
void add_outcomes(const enforcer::Executor& executor, status::Counters& into);

/// That there are no process events, what follows for a daemon with a `pass` this often, and what helps.
[[nodiscard]] std::vector<planner::Problem> event_problems(const EventQueue& events,
                                                           std::chrono::seconds pass, const host::Root& root);

/// That the daemon lacks rights for what is wanted now, and which help.
[[nodiscard]] std::vector<planner::Problem> right_problems(const enforcer::Executor& executor);

void add_coexistence(const Coexistence& coexistence, status::Overview& into);

/// What cannot be had now, and since when. One problem whose text has only other numbers in it is the same.
class Problems {
  public:
    using Time = std::chrono::system_clock::time_point;
    /// Where problems come from. References must outlive this; they are used by the calls only.
    struct Sources {
        const Loading& loading;
        const Current& current;
        const enforcer::Executor& executor;
        Tasks& tasks;
        const Units& units;
        const Steering& steering;
        const host::Root& root;
        const Settings& settings;
    };
    explicit Problems(const Sources& sources) : sources_(sources) {}

    /// A pass has ended: all processes have been seen, and problems that are new began now at the latest.
    void end_pass();
    /// All that there are now, the newest first.
    [[nodiscard]] std::vector<status::ProblemStatus> list();
    [[nodiscard]] Time last_pass() const { return last_pass_; } ///< its end; the epoch: there was none

  private:
    [[nodiscard]] std::vector<status::ProblemStatus> present() const;
    Sources sources_;
    Time last_pass_{};
    std::unordered_map<std::string, Time> since_;
};

/// What an answer that is worked out in slices rests on: the policies in force when it began, and a copy of
/// the assignments, as looking must not assign slots.
class AnswerBasis {
  public:
    /// Takes both with the first call, so that what was asked for behind a reload is answered by the new
    /// policies. False: a reload has replaced the policies since.
    [[nodiscard]] bool hold(const Current& current, const planner::Assignments& assignments) {
        if (!world_) {
            world_ = current.world;
            assignments_ = assignments;
        }
        return world_ == current.world;
    }
    /// Of a basis that was held.
    [[nodiscard]] const World& world() const { return *world_; }
    [[nodiscard]] planner::Assignments& assignments() { return assignments_; }

  private:
    std::shared_ptr<World> world_;
    planner::Assignments assignments_;
};

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
