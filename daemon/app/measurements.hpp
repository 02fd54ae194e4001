// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "policy/policy.hpp"
#include "state/history.hpp"

#include <optional>
#include <string>

namespace affinityd::app {

/// What came of measurements: kept over restarts where there is a history, compared with the runs before.
class Measurements {
  public:
    /// Opens the history in the state directory; without one (dry run, disk full) results are known until the end only.
    Measurements(const std::string& state_dir, Log& log);

    /// What the measuring child printed, or with `fault` why there is nothing: each is a recorded outcome.
    void add(const std::string& output, const std::string& fault, const policy::PolicySet& policies);

    /// {"last": {...}, "trend": {...}, "runs": N, "summary": "..."}, or null before the first run. JSON text.
    [[nodiscard]] std::string to_json() const;

  private:
    void keep(state::MeasurementRecord record);
    Log& log_;
    std::optional<state::History> history_;
    std::vector<state::MeasurementRecord> recent_; ///< oldest first
};

} // namespace affinityd::app
