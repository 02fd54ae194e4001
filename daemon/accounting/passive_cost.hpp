// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/cost_period.hpp"
#include "accounting/cost_report.hpp"
#include "accounting/nic_traffic.hpp"
#include "accounting/past_costs.hpp"
#include "base/task_id.hpp"
#include "state/history.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::accounting {

/// What the traffic of each policy's interfaces costs, measured without any traffic of the daemon's own: CPU
/// time of the policy's processes over the bytes of its interfaces. A policy's period lasts until its text
/// changes; the last period under another text is kept for comparison.
class PassiveCost {
  public:
    using Records = std::vector<state::MeasurementRecord>;

    /// `root` must outlive it.
    explicit PassiveCost(const host::Root& root) : root_(root), traffic_(root) {}

    /// Periods of earlier daemons, oldest first, as take_closed() returned them.
    void recall(const Records& records) { past_.recall(records); }

    /// A pass over all processes begins. A pass or a settlement under way is abandoned; it loses nothing.
    void begin_pass();
    /// A process under policy was looked at in the present pass, or (`ending`) is about to go. Reads one
    /// file.
    void see(const TaskId& id, const std::string& policy, bool ending = false);

    /// What begin_settling() is given.
    struct Terms {
        std::vector<CostSubject> policies; ///< all that are in force; the periods of all others are closed
        std::vector<std::string> nics;     ///< all interfaces of the machine
        std::int64_t now = 0;              ///< seconds since 1970 (UTC)
    };
    /// The pass is complete: its figures are added up by settle(). A policy that is new or changed begins
    /// its period here, for what went before ends where its figures are known. With no policies, all periods
    /// are closed: so the daemon ends.
    void begin_settling(Terms terms);
    /// Works until `out_of_time` says so. True: settled, or there was nothing to settle.
    [[nodiscard]] bool settle(const std::function<bool()>& out_of_time);
    /// Records of periods that settle() has closed, to be kept; each is returned once.
    [[nodiscard]] Records take_closed();

    [[nodiscard]] CostReport report() const;

  private:
    using Periods = std::map<std::string, CostPeriod>; ///< by policy
    /// A settlement under way.
    struct Settlement {
        std::map<std::string, CostSubject> subjects; ///< by policy
        std::vector<std::string> left;               ///< policies whose period is still to be settled
        bool is_traffic_read = false;
        std::int64_t now = 0;
    };
    CostPeriod& period(const std::string& policy);
    void list_periods(Settlement& settlement);
    [[nodiscard]] bool settle(Settlement& settlement, const std::string& policy,
                              const std::function<bool()>& out_of_time);
    void close(const std::string& policy, const CostPeriod& period, std::int64_t now);

    const host::Root& root_;
    NicTraffic traffic_;
    Periods periods_;
    PastCosts past_;
    std::optional<Settlement> settlement_;
    Records closed_;
};

} // namespace affinityd::accounting
