// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/measurements.hpp"
#include "accounting/nic_usage.hpp"
#include "accounting/passive_cost.hpp"
#include "core/log.hpp"
#include "core/shared.hpp"
#include "core/task_table.hpp"
#include "core/work.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace affinityd::core {

/// Which interface serves which process, what that costs, how local it is, and what was measured:
/// accounting's parts of a pass.
class Bookkeeping {
  public:
    /// `state_dir`: of the measurement history; "": none is kept.
    Bookkeeping(const host::Root& root, const Current& current, TaskTable& tasks,
                const std::string& state_dir, Log& log);
    ~Bookkeeping() = default;
    Bookkeeping(const Bookkeeping&) = delete;
    Bookkeeping& operator=(const Bookkeeping&) = delete;

    /// Finds out which interface serves which process, as of now. `takes_none`: it has listeners open, but
    /// takes no connections from them.
    void begin_usage(const std::function<bool(const KnownProcess&)>& takes_none);
    /// True: it is known, and noted at the processes. `changed` tells whether the placements depend on it and
    /// are others now.
    [[nodiscard]] bool step_usage(const OutOfTime& out_of_time, bool& changed);

    /// Adds up what the traffic of the pass has cost. `at_end`: the daemon ends, so all periods are closed.
    void begin_costs(const std::map<std::string, std::set<std::string>>& groups, bool at_end = false);
    [[nodiscard]] bool step_costs(const OutOfTime& out_of_time);

    /// Records of one kind, oldest first.
    [[nodiscard]] std::vector<state::MeasurementRecord> kept(const std::string& kind) {
        return measurements_.kept(kind);
    }
    /// To be written with the next step_costs().
    void keep(state::MeasurementRecord record) { measurements_.keep(std::move(record)); }
    void measured(const measure::Run& run);
    [[nodiscard]] accounting::HistoryReport history(const std::string& kind) {
        return measurements_.history(kind);
    }
    [[nodiscard]] std::optional<accounting::MeasurementReport> measurement() const {
        return measurements_.report();
    }
    [[nodiscard]] accounting::CostReport costs() const { return costs_.report(); }
    [[nodiscard]] accounting::PassiveCost& counters() { return costs_; }

  private:
    [[nodiscard]] bool use(const accounting::NicUsageResult& result);
    [[nodiscard]] planner::NicUsage count_readers() const;
    const host::Root& root_;
    const Current& current_;
    TaskTable& tasks_;
    Log& log_;
    accounting::NicUsage usage_;
    accounting::PassiveCost costs_;
    accounting::Measurements measurements_;
};

} // namespace affinityd::core
