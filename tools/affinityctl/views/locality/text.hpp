// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/locality/report.hpp"
#include "affinityctl/views/page.hpp"

#include <string>

namespace affinityctl {

/// One page: the figures of the busiest processes and of all, the heat map, what brings packets to each CPU,
/// remarks, and one sentence that says what to do.
[[nodiscard]] std::string locality_text(const LocalityReport& report,
                                        const affinityd::locality::Nearness& near, const Page& page);

} // namespace affinityctl
