// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/cost_report.hpp"
#include "state/history.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace affinityd::accounting {

/// The last few finished periods of each policy, for comparison.
class PastCosts {
  public:
    /// Periods as earlier daemons kept them, oldest first. Records that cannot be read are left out.
    void recall(const std::vector<state::MeasurementRecord>& records);
    void remember(const std::string& policy, PastCost past);
    /// The last period of the policy under another text; null: there is none. Valid until the next change.
    [[nodiscard]] const PastCost* before(const std::string& policy, std::uint64_t text_hash) const;

  private:
    std::map<std::string, std::vector<PastCost>> past_; ///< by policy, oldest first
};

/// The detail of a record by which a period is known again: {"text_hash":N}.
[[nodiscard]] std::string cost_detail(std::uint64_t text_hash);

} // namespace affinityd::accounting
