// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cpu_ledger.hpp"
#include "app/task_table.hpp"
#include "app/world.hpp"
#include "state/history.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::app {

/// What the traffic of each policy's interfaces costs, seen without any traffic of our own: CPU time of the policy's processes
/// over the bytes of its interfaces. A period lasts until the policies change; the one before is kept for comparison.
class PassiveCost {
  public:
    explicit PassiveCost(const host::Root& root);

    /// A process under policy was looked at in the present pass, or (`ending`) is about to go.
    void see(const TaskId& id, const std::string& policy, bool ending = false);
    /// The pass is over: adds up. To be called once a pass.
    void add_up(const World& world);
    /// The policies change: what is closed now, for the history. `now`: seconds since 1970.
    [[nodiscard]] std::vector<state::MeasurementRecord> close(std::int64_t now);
    /// A list with an entry for each policy that has interfaces; for `status`.
    [[nodiscard]] nlohmann::json to_json() const;

  private:
    struct Traffic {
        std::optional<std::uint64_t> last; ///< the counter, to see how far it went
        double bytes = 0;
    };
    struct Policy {
        explicit Policy(std::uint64_t born_after, double began) : ledger(born_after), since(began) {}
        CpuLedger ledger;
        std::vector<CpuLedger::Entry> living; ///< seen in the present pass
        std::map<std::string, Traffic> nics;
        std::string model;
        double since;                         ///< CLOCK_MONOTONIC seconds
        double until = 0;                     ///< of the last look
        double softirq_seconds = 0;           ///< estimate, see add_softirqs
        [[nodiscard]] double bytes() const;
    };
    struct Past {
        double bytes = 0, cpu_seconds = 0;
        std::string model;
    };
    [[nodiscard]] std::optional<std::uint64_t> counter_of(const std::string& nic) const;
    [[nodiscard]] std::optional<CpuLedger::Entry> read(const TaskId& id) const;
    Policy& policy(const std::string& name);
    void add_softirqs(const std::map<std::string, double>& grown);

    const host::Root& root_;
    std::map<std::string, Policy> policies_; ///< of the present period, by name
    std::map<std::string, Past> before_;     ///< of the period before
    std::map<std::string, Traffic> all_nics_;
    std::optional<double> softirqs_;         ///< network softirq seconds of the machine at the last look
};

/// Seconds of softirq work that was for the network, from /proc/stat and /proc/softirqs: the machine's softirq time, divided as
/// the numbers of softirqs are. Nothing if one of them is not there.
[[nodiscard]] std::optional<double> network_softirq_seconds(std::string_view stat, std::string_view softirqs, double ticks_per_second);

} // namespace affinityd::app
