// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/page.hpp"
#include "affinityctl/views/models/work_view.hpp"

#include <string>
#include <vector>

namespace affinityctl {

/// The experiment for a person: for each kind of work the models side by side, size by size, with what it
/// cost and what happened meanwhile; then what each CPU did, and the interrupts of the NICs.
[[nodiscard]] std::string models_text(const affinityd::ttcp::ModelsReport& report,
                                      const std::vector<WorkView>& views, const Page& page);

} // namespace affinityctl
