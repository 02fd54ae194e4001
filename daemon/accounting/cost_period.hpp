// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/cost_report.hpp"
#include "accounting/cpu_ledger.hpp"
#include "accounting/nic_traffic.hpp"
#include "policy/policy.hpp"
#include "state/history.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace affinityd::accounting {

/// A policy as far as its costs depend on it.
struct CostSubject {
    std::string policy;
    std::uint64_t text_hash = 0; ///< of its text: another text begins another period
    policy::Model model = policy::Model::none;
    std::vector<std::string> nics; ///< interfaces that serve it
};

/// The time since one text of a policy came into force: what its processes used and its interfaces carried.
class CostPeriod {
  public:
    /// `now`: CLOCK_MONOTONIC seconds; `ticks`: clock ticks since boot.
    CostPeriod(std::uint64_t ticks, double now) : ledger_(ticks), since_(now) {}

    [[nodiscard]] CpuLedger& ledger() { return ledger_; }
    /// Adds what the interfaces carried since the last time.
    void add(const NicTraffic::Totals& totals, double now);
    /// The subject in force from now on. Interfaces that are new count from `totals`.
    void set(const CostSubject& subject, const NicTraffic::Totals& totals);
    /// Begins again at zero, with the same processes.
    void restart(std::uint64_t ticks, double now);

    [[nodiscard]] bool is_new() const { return until_ == 0; } ///< nothing was added yet
    [[nodiscard]] std::uint64_t text_hash() const { return text_hash_; }
    /// Names only, for counting who shares an interface.
    [[nodiscard]] std::vector<std::string> nics() const;
    [[nodiscard]] PolicyCost cost(const std::string& policy) const;
    /// As it is remembered when it ends at `time`, seconds since 1970.
    [[nodiscard]] PastCost past(std::int64_t time) const;
    /// One record for each interface with traffic, to be kept.
    [[nodiscard]] std::vector<state::MeasurementRecord> records(const std::string& policy,
                                                                std::int64_t time) const;

  private:
    struct Carried {
        NicTraffic::Total last; ///< the interface's total when it was last added
        double bytes = 0;
    };
    [[nodiscard]] double bytes() const;

    CpuLedger ledger_;
    std::map<std::string, Carried> nics_;
    std::string model_;
    std::uint64_t text_hash_ = 0;
    double since_;     ///< CLOCK_MONOTONIC seconds
    double until_ = 0; ///< of the last addition; 0: none yet
    double softirq_seconds_ = 0;
};

} // namespace affinityd::accounting
