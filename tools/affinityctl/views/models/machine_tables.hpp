// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/models/work_view.hpp"
#include "affinityctl/views/page.hpp"

#include <string>
#include <vector>

namespace affinityctl {

/// What each CPU did, per model.
[[nodiscard]] std::string cpu_table(const PointView& point, const std::vector<std::string>& labels,
                                    const Page& page);
/// For each model, a row for the interrupt of each queue, a column for each CPU that took any; "" where no
/// NIC raised any.
[[nodiscard]] std::string interrupt_tables(const PointView& point, const std::vector<std::string>& labels,
                                           const Page& page);

} // namespace affinityctl
