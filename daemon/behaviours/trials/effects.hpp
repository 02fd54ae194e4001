// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "behaviours/list.hpp"
#include "planner/affinity_choice.hpp"
#include "planner/judgement.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::behaviours {

/// Counts the effects of policies on their programs, for those who judge a change. A policy is watched from
/// the first look at it until a minute has gone by without one; nothing is read otherwise.
class Effects {
  public:
    /// References must outlive it.
    explicit Effects(Daemon& daemon) : shared_(daemon.shared()), tasks_(daemon.tasks()) {}

    /// The growth of the counters since the last look at this policy, as of the last read(). The first look
    /// begins to watch it, and finds zeros. `is_settling`: errors that were logged until now do not count.
    [[nodiscard]] planner::Effect look(std::size_t policy, bool is_settling);
    /// Reads the counters of all policies that are watched; to be called once a second.
    [[nodiscard]] Slices read();
    [[nodiscard]] bool is_watching() const { return !watched_.empty(); }

  private:
    using Clock = std::chrono::steady_clock;
    /// A counter of the kernel: the growth since it was read last.
    struct Counter {
        std::optional<double> last{};
        double grow(std::optional<double> now);
    };
    struct ThreadCounts {
        Counter ran, waited, moved;
    };
    using Threads = std::unordered_map<TaskId, ThreadCounts>;
    /// Entries of units in the journal, as far as they were read.
    struct Errors {
        std::string cursor{};     ///< of the last one; "": nothing was read yet
        Clock::time_point from{}; ///< older ones do not count
        std::uint64_t found = 0;
    };
    struct Watched {
        planner::Effect growth{}; ///< since the last look
        Clock::time_point looked{};
        Counter seconds{}, bytes{}, reads{}, local_reads{};
        std::map<std::string, Counter> groups{}; ///< control groups in which no others run: their CPU time
        std::set<int> grouped{};                 ///< the processes in these
        Threads threads{};                       ///< those that stand for all
        Errors journal{};                        ///< as far as it was read
        std::future<Errors> errors{};            ///< a reading under way
    };
    void count(const std::string& policy, Watched& watched);
    void count_groups(const std::string& policy, std::size_t index, Watched& watched);
    void count_errors(Watched& watched);
    [[nodiscard]] static Errors read_errors(const std::set<std::string>& units, Errors known);

    Shared& shared_;
    Tasks& tasks_;
    std::map<std::string, Watched> watched_; ///< by policy
};

/// The choices of policies with `affinity: auto`. A trial begins at the end of a pass, if there is traffic,
/// and the choice is to be made, or made anew; one runs at a time, so that none disturbs another. Choices are
/// kept in the measurement history, and so outlive the daemon.
class Automatic {
  public:
    /// References must outlive it.
    Automatic(Shared& shared, Effects& effects);
    /// The choices that are to be in force in a world. A trial whose policy has changed is dropped.
    [[nodiscard]] World::Choices choices(const World& world);
    /// `may_begin`: no policy is on trial by hand; else a trial of ours is dropped.
    void end_pass(bool may_begin);
    /// A second has gone by, and the effects were read.
    void tick();
    /// How far its choice is, in words; "": it makes none.
    [[nodiscard]] std::string state(const policy::Policy& policy) const;

  private:
    struct Traffic {
        double bytes = 0, hour_bytes = 0; ///< counted until then
        double time = 0, hour = 0;        ///< CLOCK_MONOTONIC seconds
        std::optional<double> per_second; ///< in the last full hour
    };
    [[nodiscard]] std::string queues_of(const policy::Policy& policy) const;
    [[nodiscard]] std::vector<planner::AutoCandidate> candidates(const policy::Policy& policy) const;
    [[nodiscard]] planner::ChoiceBasis basis_of(const policy::Policy& policy, double bytes_per_second) const;
    [[nodiscard]] std::optional<double> traffic_of(const std::string& policy);
    [[nodiscard]] bool is_due(const policy::Policy& policy) const;
    [[nodiscard]] double round() const;
    void begin(const policy::Policy& policy);
    void follow();
    void finish(const policy::Policy& policy);

    Shared& shared_;
    Effects& effects_;
    std::map<std::string, planner::AutoChoice> chosen_; ///< by policy
    std::map<std::string, Traffic> traffic_;            ///< by policy
    std::map<std::string, std::int64_t> last_try_;      ///< its end, seconds since 1970, by policy
    std::optional<planner::AffinityTrial> trial_;
    std::string tried_; ///< the policy of the trial
    std::uint64_t text_hash_ = 0;
};

} // namespace affinityd::behaviours
