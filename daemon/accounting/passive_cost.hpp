// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/policy.hpp"
#include "state/history.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::accounting {

/// Below so many bytes a cost says nothing.
inline constexpr double least_bytes = 1e6;

/// CPU seconds per 10^9 bytes; no value below `least_bytes`.
[[nodiscard]] inline std::optional<double> per_gigabyte(double seconds, double bytes) {
    return bytes >= least_bytes ? std::optional(seconds / (bytes / 1e9)) : std::nullopt;
}

/// CPU time of a control group since it was made ("/a/b"); no value: not known.
[[nodiscard]] std::optional<double> seconds_of(const host::Root& root, const std::string& group);
/// Processes in it, but for those in groups below.
[[nodiscard]] std::vector<int> members_of(const host::Root& root, const std::string& group);

/// A finished period of a policy: what its traffic cost while one text of it was in force.
struct PastCost {
    std::int64_t ended_at = 0;   ///< seconds since 1970 (UTC)
    std::uint64_t text_hash = 0; ///< of the policy's text
    double bytes = 0;
    double cpu_seconds = 0;
    std::string model; ///< "none", "irq", "process", "full"
};

/// Bytes that one interface carried during a policy's period.
struct NicBytes {
    std::string nic;
    double bytes = 0;
    bool shared = false; ///< another policy's traffic uses the interface too: both are given all of its bytes
};

/// The present period of one policy.
struct PolicyCost {
    std::string policy;
    std::string model;
    double seconds = 0; ///< how long the period has lasted
    std::vector<NicBytes> nics;
    double bytes = 0;               ///< over all of them
    double cpu_seconds = 0;         ///< of the control groups of the policy's processes
    std::optional<PastCost> before; ///< the last period under another text
};

/// Each policy that has interfaces, by name.
using CostReport = std::vector<PolicyCost>;

/// A policy as far as its costs depend on it.
struct CostSubject {
    std::string policy;
    std::uint64_t text_hash = 0; ///< of its text: another text begins another period
    policy::Model model = policy::Model::none;
    std::vector<std::string> nics; ///< interfaces that serve it
    std::set<std::string> groups;  ///< control groups of its processes, but for the root's
};

/// The cost of the traffic of each policy's interfaces, measured without any traffic of the daemon's own: CPU
/// time of the control groups of the policy's processes (cpu.stat, cgroup-v2.rst; other processes in them
/// count, too) over the bytes of its interfaces. A policy's period lasts until its text changes; the last
/// period under another text is kept for comparison.
class PassiveCost {
  public:
    using Records = std::vector<state::MeasurementRecord>;

    /// `root` must outlive it.
    explicit PassiveCost(const host::Root& root) : root_(root) {}

    /// Periods of earlier daemons, oldest first, as take_closed() returned them. Records that cannot be read
    /// are left out.
    void recall(const Records& records);

    /// A pass is complete: all policies in force; the periods of all others are closed. `now`: seconds since
    /// 1970 (UTC). A reading under way is abandoned; it loses nothing.
    void begin(std::vector<CostSubject> subjects, std::int64_t now);
    /// Reads counters until `out_of_time` says so. True: all are read.
    [[nodiscard]] bool step(const std::function<bool()>& out_of_time);
    /// Records of periods that were closed, to be kept; each is returned once.
    [[nodiscard]] Records take_closed() { return std::exchange(closed_, {}); }

    [[nodiscard]] CostReport report() const;

    /// The bytes that its interfaces have carried in its period, read now. No value: no pass has seen it yet.
    [[nodiscard]] std::optional<double> bytes(const std::string& policy);
    /// Control groups of its processes, as of the last pass; null: none has seen it yet.
    [[nodiscard]] const std::set<std::string>* groups(const std::string& policy) const;

  private:
    /// A counter of the kernel and its growth in a period.
    struct Counter {
        std::optional<double> last{}; ///< no value: not there
        double grown = 0;
        void take(std::optional<double> now, bool counts_anew);
    };
    struct Period {
        CostSubject subject;
        double since = 0, until = 0; ///< CLOCK_MONOTONIC seconds
        std::map<std::string, Counter> nics{}, groups{};
        double left = 0; ///< CPU seconds of groups that have gone
        [[nodiscard]] double bytes() const;
        [[nodiscard]] double cpu_seconds() const;
    };
    void settle(CostSubject subject);
    void read(Period& period);
    void remember(const std::string& policy, PastCost past);
    void close(const Period& period);

    const host::Root& root_;
    std::map<std::string, Period> periods_;             ///< by policy
    std::map<std::string, std::vector<PastCost>> past_; ///< by policy, oldest first
    std::vector<CostSubject> subjects_;                 ///< to be read
    std::vector<std::string> ended_;                    ///< policies whose periods are to be closed
    std::int64_t now_ = 0;
    Records closed_;
};

} // namespace affinityd::accounting
