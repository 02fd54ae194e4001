// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/measurements.hpp"
#include "accounting/passive_cost.hpp"
#include "base/owned_text.hpp"
#include "planner/affinity_choice.hpp"
#include "state/history.hpp"
#include "status/status.hpp"

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace affinityd::status {

// The forms that affinityctl-json(5) documents.

/// Names of processes may be any bytes; what is not UTF-8 becomes U+FFFD.
[[nodiscard]] std::string dump(const nlohmann::json& value);

/// "in place", "drifted" ...
[[nodiscard]] std::string_view state_of(const ThreadStatus& thread);
[[nodiscard]] std::string_view state_of(const QueueStatus& queue);
[[nodiscard]] nlohmann::json to_json(const planner::Subject& subject);
[[nodiscard]] nlohmann::json to_json(const planner::Action& action);
[[nodiscard]] nlohmann::json to_json(const planner::Problem& problem);
/// `with_names`: with a thread's name, which only root may read.
[[nodiscard]] nlohmann::json to_json(const Finding& finding, bool with_names);
[[nodiscard]] nlohmann::json to_json(const ThreadStatus& thread);
/// Without its threads.
[[nodiscard]] nlohmann::json to_json(const ProcessStatus& process);
[[nodiscard]] nlohmann::json to_json(const LocalStatus& local);
[[nodiscard]] nlohmann::json to_json(const PolicyStatus& policy);
[[nodiscard]] nlohmann::json to_json(const NotSteered& listeners);
[[nodiscard]] nlohmann::json to_json(const TasksAtArrivals& tasks);
[[nodiscard]] nlohmann::json to_json(const QueueStatus& queue);
[[nodiscard]] nlohmann::json to_json(const planner::Crowding& crowding); ///< loads in CPUs
[[nodiscard]] nlohmann::json to_json(const Overview& overview);
/// Without its threads.
[[nodiscard]] nlohmann::json to_json(const ProcessExplanation& process);
[[nodiscard]] nlohmann::json to_json(const ThreadExplanation& thread, const ProcessExplanation& process);

// Reports of accounting as texts of this kind.

[[nodiscard]] std::string to_text(const accounting::CostReport& report);
/// "null" before the first run.
[[nodiscard]] std::string to_text(const std::optional<accounting::MeasurementReport>& report);
[[nodiscard]] std::string to_text(const accounting::HistoryReport& report);
[[nodiscard]] std::string to_text(const LocalStatus& local);
[[nodiscard]] std::string to_text(const Acknowledged& problems);
/// The trials under way, and the last that are over.
[[nodiscard]] std::string to_text(const std::vector<TrialStatus>& trials,
                                  const std::vector<TrialStatus>& ended);
[[nodiscard]] std::string names_text(const std::vector<std::string>& folders, const std::set<int>& pids);
/// The judgement alone.
[[nodiscard]] std::string to_text(const planner::Judgement& judgement);

/// A choice of `affinity: auto`, for the measurement history, and read from there. No value: it is none.
[[nodiscard]] state::MeasurementRecord record_of(const std::string& policy,
                                                 const planner::AutoChoice& choice);
[[nodiscard]] std::optional<planner::AutoChoice> read_choice(const state::MeasurementRecord& record);
/// "94 % same core, 12 % by chance (420 samples)"
[[nodiscard]] std::string to_string(const LocalStatus& local);

/// Threads and queues that are not where they should be, counted as an answer meets them. A right that the
/// daemon lacks is a finding of its own, and counts all that it keeps from being set.
class Tally {
  public:
    void add(const ThreadStatus& thread, const std::string& policy);
    void add(const QueueStatus& queue);
    /// Adds a problem for each kind and policy, and what the last measurement tells; names, orders and
    /// acknowledges all, takes the notes out of them, and gives the verdict.
    void judge(Overview& overview, const std::optional<accounting::MeasurementReport>& measured) const;

  private:
    struct Group {
        std::string first, comm, why; ///< the name of the first, and the reason of its refusal
        std::size_t count = 1;
    };
    void add(std::string_view state, bool is_queue, const std::string& policy, Group one);
    std::map<std::tuple<Ailment, bool, std::string>, Group> groups_; ///< bool: queues
};

/// A JSON answer that is written piece by piece: one about many thousand threads must neither be one value in
/// memory nor one long turn of the loop. Names of a process are its owner's; others read it without
/// names.
class AnswerText {
  public:
    /// Begins the list `key`; the one before it ends.
    void begin_list(std::string_view key);
    /// Begins a process whose threads are added one by one.
    void begin_process(const ProcessStatus& process);
    /// A thread of the process that was begun.
    void add(const ThreadStatus& thread, uid_t owner);
    void end_process();
    void add(const QueueStatus& queue);
    /// `owner`: of the task that it is about; no_owner: root only.
    void add(const planner::Action& action, uid_t owner);
    /// A thread of `process`.
    void add(const ThreadExplanation& thread, const ProcessExplanation& process);
    /// Adds a member for all users; `value` is JSON.
    void add_member(std::string_view key, const std::string& value);
    /// The same with a value that is the owner's.
    void add_member(std::string_view key, uid_t owner, const std::string& full, const std::string& redacted);
    /// Threads and queues that were added and are not where they should be.
    [[nodiscard]] const Tally& tally() const { return tally_; }
    /// Ends the last list. The text is complete then.
    [[nodiscard]] OwnedText finish();

  private:
    void begin_member(std::string_view key);
    [[nodiscard]] std::string separator(); ///< before the next entry of the list
    OwnedText text_;
    Tally tally_;
    std::string policy_; ///< of the process that was begun
    bool in_list_ = false;
    bool is_first_ = true; ///< of its list
    bool is_first_thread_ = true;
    bool is_begun_ = false;
};

/// The end of a status answer, which is judged, and the whole of the shorter ones.
[[nodiscard]] OwnedText finish(AnswerText text, Overview overview,
                               const std::optional<accounting::MeasurementReport>& measured);
/// `crowding`: the worst that would be; null: none would.
[[nodiscard]] OwnedText finish_plan(AnswerText text, const std::vector<planner::Problem>& problems,
                                    const planner::Crowding* crowding);
[[nodiscard]] OwnedText finish(AnswerText text, const ProcessExplanation& process);
/// `note`: why no policy places it; "": there is nothing to say.
[[nodiscard]] OwnedText answer(const std::string& subject, const std::vector<QueueStatus>& queues,
                               const std::string& note = "");

} // namespace affinityd::status
