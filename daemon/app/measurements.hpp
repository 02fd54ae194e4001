// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "measure/result.hpp"
#include "measure/run.hpp"
#include "policy/policy.hpp"
#include "state/history.hpp"

#include <optional>
#include <string>

namespace affinityd::app {

/// How the measuring child ended.
using MeasuringRun = measure::Run;

/// What came of measurements: kept over restarts where there is a history, compared with the runs before.
class Measurements {
  public:
    /// Opens the history in the state directory; without one (dry run, disk full) results are known until the
    /// end only.
    Measurements(const std::string& state_dir, Log& log);

    /// Whatever came of it is a recorded outcome.
    void add(const MeasuringRun& run, const policy::PolicySet& policies);

    /// What is kept of one kind from before, oldest first; nothing where there is no history.
    [[nodiscard]] std::vector<state::MeasurementRecord> kept(const std::string& kind) const;

    /// Keeps one that is complete: the passive cost of a policy.
    void keep(state::MeasurementRecord record);

    /// {"last": {...}, "trend": {...}, "runs": N, "summary": "..."}, or null before the first run. JSON text.
    [[nodiscard]] std::string to_json() const;

    /// {"records": [...], "trends": [...]}: the last records, oldest first, of one kind or ("") of all. JSON
    /// text.
    [[nodiscard]] std::string history(const std::string& kind) const;

  private:
    void tell_of_regression(const state::MeasurementRecord& record);
    Log& log_;
    std::optional<state::History> history_;
    std::vector<state::MeasurementRecord> recent_; ///< of kind "ttcp", oldest first
};

} // namespace affinityd::app
