// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cpu_ledger.hpp"
#include "app/world.hpp"
#include "state/history.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::app {

/// What the traffic of each policy's interfaces costs, seen without any traffic of our own: CPU time of the
/// policy's processes over the bytes of its interfaces. A policy's period lasts until its file changes; the
/// last one under another text is kept for comparison. Where policies share an interface each is given all of
/// its bytes, and that is said.
class PassiveCost {
  public:
    using Records = std::vector<state::MeasurementRecord>;

    explicit PassiveCost(const host::Root& root);

    /// Periods of earlier daemons, oldest first, as they were returned to be kept.
    void recall(const Records& records);

    /// A pass begins; one that was under way starts over.
    void begin_pass();
    /// A process under policy was looked at in the present pass, or (`ending`) is about to go.
    void see(const TaskId& id, const std::string& policy, bool ending = false);
    /// A pass over all processes is complete: adds up. A policy that is new or changed begins its period
    /// here, for what went before ends where its figures are known. `used`: interfaces of policies that name
    /// none and of whom the world does not know. `now`: seconds since 1970. What is returned is closed, to be
    /// kept.
    [[nodiscard]] Records add_up(const World& world, const planner::Serving& used, std::int64_t now);
    /// The daemon ends: adds up what was seen since the last pass and closes all periods.
    [[nodiscard]] Records finish(const World& world, std::int64_t now);
    /// A list with an entry for each policy that has interfaces; for `status`.
    [[nodiscard]] nlohmann::json to_json() const;

  private:
    struct Grown {
        double bytes = 0;
        double softirq_seconds = 0; ///< estimate, see share_softirqs
    };
    using Growth = std::map<std::string, Grown>; ///< of interfaces since the last look
    struct Period {
        Period(std::uint64_t born_after, double began) : ledger(born_after), since(began) {}
        CpuLedger ledger;
        std::vector<CpuLedger::Entry> living; ///< seen in the present pass
        std::map<std::string, double> nics;   ///< with their bytes
        std::string model;
        std::uint64_t text_hash = 0;
        double since;     ///< CLOCK_MONOTONIC seconds
        double until = 0; ///< of the last look; 0: never yet
        double softirq_seconds = 0;
        [[nodiscard]] double bytes() const;
        void look(const Growth& growth, double now);
    };
    struct Past {
        std::int64_t time = 0;
        std::uint64_t text_hash = 0;
        double bytes = 0, cpu_seconds = 0;
        std::string model;
    };
    [[nodiscard]] std::optional<std::uint64_t> counter_of(const std::string& nic) const;
    [[nodiscard]] std::optional<CpuLedger::Entry> read(const TaskId& id) const;
    [[nodiscard]] Growth growth(const World& world);
    void share_softirqs(Growth& growth);
    Period& period(const std::string& policy);
    void close(const std::string& policy, const Period& period, std::int64_t now, Records& records);
    void remember(const std::string& policy, const Past& past);
    [[nodiscard]] const Past* before(const std::string& policy, std::uint64_t text_hash) const;

    const host::Root& root_;
    std::map<std::string, Period> periods_;                        ///< by policy
    std::map<std::string, std::vector<Past>> past_;                ///< oldest first, a few
    std::map<std::string, std::optional<std::uint64_t>> counters_; ///< of interfaces at the last look
    std::optional<double> softirqs_; ///< network softirq seconds of the machine at the last look
};

/// Seconds of softirq work that was for the network, from /proc/stat and /proc/softirqs: the machine's
/// softirq time, divided as the numbers of softirqs are. Nothing if one of them is not there.
[[nodiscard]] std::optional<double> network_softirq_seconds(std::string_view stat, std::string_view softirqs,
                                                            double ticks_per_second);

} // namespace affinityd::app
