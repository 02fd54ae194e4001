// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/load.hpp"
#include "app/task_table.hpp"
#include "app/work.hpp"
#include "locality/nearness.hpp"
#include "locality/read_counts.hpp"
#include "state/history.hpp"
#include "status/status.hpp"

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace affinityd::app {

/// How near to the CPU that took a packet in the processes of each policy read it, as the kernel counts.
/// Older reads count less and less: when there are more than `most_reads` of a policy, each counts half.
class LocalReads {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::uint64_t most_reads = 1'000'000; ///< of a policy
    static constexpr std::uint64_t enough = 20;            ///< before that nothing is said of a policy
    static constexpr std::chrono::hours between_records{1}, longest_between_records{24};

    /// References must outlive it.
    struct Parts {
        const host::Root& root;
        const Current& current;
        const TaskTable& tasks;
    };
    explicit LocalReads(const Parts& parts) : parts_(parts) {}

    /// Works out figures in slices. True: done.
    [[nodiscard]] bool step(const OutOfTime& out_of_time);
    /// Adds reads; those of processes that are not under policy now are left out.
    void note(const locality::ReadCounts& found);

    /// As of the last step; no value: too little is known.
    [[nodiscard]] std::optional<status::LocalStatus> of_policy(std::string_view policy) const;
    /// Of one process, with where its packets come from.
    void explain(const TaskId& process, status::ProcessExplanation& into) const;
    /// The next one that is to be kept of a policy of which enough is known: once an hour if it has changed
    /// by five percent of all packets, else once a day. `time`: seconds since 1970.
    [[nodiscard]] std::optional<state::MeasurementRecord> take_record(Clock::time_point now,
                                                                      std::int64_t time);

  private:
    struct Owner {
        TaskId id{}; ///< tells a later process of the same number apart
        std::string comm;
    };
    /// See locality::ReadCount.
    struct Pair {
        int pid = 0;
        std::uint64_t network_space = 0;
        unsigned napi = 0;
        std::optional<unsigned> arrival{};
        unsigned reader = 0;
        friend auto operator<=>(const Pair&, const Pair&) = default;
    };
    struct Seen {
        std::map<Pair, std::uint64_t> reads;
        std::uint64_t all = 0;       ///< of `reads`, together
        std::map<int, Owner> owners; ///< by pid
        bool is_new = false;         ///< there are reads since the figures were worked out
        std::optional<status::LocalStatus> figures{};
        Clock::time_point kept = Clock::now(); ///< when a record was made, or would have been
        double kept_core = -1;                 ///< same core; -1: there was none
        void drop(const std::function<bool(int pid)>& is_meant); ///< reads of such processes
    };
    [[nodiscard]] static locality::ReadCounts counts_of(const Seen& seen);
    [[nodiscard]] static bool is_worth_keeping(const Seen& seen, Clock::time_point now);
    void renew(const std::string& policy, Seen& seen);

    Parts parts_;
    std::map<std::string, Seen, std::less<>> policies_;
    std::optional<locality::Nearness> near_;
    std::optional<std::string> next_; ///< the policy whose figures are worked out next; no value: none are
};

} // namespace affinityd::app
