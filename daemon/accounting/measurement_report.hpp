// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/trend.hpp"
#include "state/history.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace affinityd::accounting {

/// The last ttcp measurement and how it stands to those before it.
struct MeasurementReport {
    state::MeasurementRecord last;
    std::string summary;  ///< one line for a person
    std::size_t runs = 0; ///< remembered, `last` included
    measure::TrendReport trend;
};

/// The trend of the runs over one path.
struct PathTrend {
    std::string kind; ///< "ttcp"
    std::string path; ///< "loopback", or the peer
    measure::TrendReport trend;
};

/// What is kept of measurements.
struct HistoryReport {
    std::vector<state::MeasurementRecord> records; ///< oldest first
    std::vector<PathTrend> trends;                 ///< by kind and path
    bool kept = false; ///< on disk; false: only what this daemon has measured itself
    std::string fault; ///< why the history could not be read; "": it could
};

/// True if the measurement went through interrupts of a NIC; loopback never does.
[[nodiscard]] inline bool touches_nic_interrupts(const state::MeasurementRecord& record) {
    return record.path != "loopback";
}

} // namespace affinityd::accounting
