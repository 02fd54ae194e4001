// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/locality/report.hpp"

#include <string>

namespace affinityctl {

/// The heat map as an SVG document, with the figures of all processes and the sentence that says what to do.
[[nodiscard]] std::string locality_svg(const LocalityReport& report,
                                       const affinityd::locality::Nearness& near);

} // namespace affinityctl
