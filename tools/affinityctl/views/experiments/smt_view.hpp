// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/page.hpp"
#include "affinityctl/views/experiments/measured_on.hpp"
#include "experiments/smt/launch.hpp"
#include "experiments/smt/reading.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace affinityctl {

/// All that `measure smt` shows. Refers to what its maker owns.
struct SmtView {
    const affinityd::experiments::SmtTimes& times;
    const affinityd::experiments::SmtReading& reading;
    const affinityd::experiments::SmtSeats& seats;
    const std::vector<affinityd::experiments::LaunchedThread>& launched;
    const std::vector<std::pair<std::string, std::string>>& topology; ///< rows of a table
};

[[nodiscard]] std::string smt_text(const SmtView& view, const MeasuredOn& on, const Page& page);
/// The document of `measure smt --json`, in affinityctl-json(5), and what the history keeps.
[[nodiscard]] nlohmann::json smt_json(const SmtView& view, const MeasuredOn& on);
[[nodiscard]] std::string smt_svg(const SmtView& view, const MeasuredOn& on);

} // namespace affinityctl
