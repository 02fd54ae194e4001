// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/locality/report.hpp"
#include "affinityctl/present/page.hpp"
#include "locality/locality.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace affinityctl {

/// The heat map as an SVG document, with the figures of all processes and the sentence that says what to do.
[[nodiscard]] std::string locality_svg(const LocalityReport& report,
                                       const affinityd::locality::Nearness& near);

/// The document of `locality --json`, documented in affinityctl-json(5): figures, and all raw counts.
[[nodiscard]] nlohmann::json locality_json(const LocalityReport& report);

/// "52%", "-" where there is nothing to be a part of.
[[nodiscard]] std::string percent_of(double share, bool is_any);
/// "10.0 s: 12,345 reads by 2 processes (policy nginx)"
[[nodiscard]] std::string headline_of(const LocalityReport& report);
/// One sentence that says what to do.
[[nodiscard]] std::string closing_of(const LocalityReport& report);
/// Remarks on how it was counted: lost, left out, without UDP.
[[nodiscard]] std::vector<std::string> remarks_of(const LocalityReport& report);

/// Where packets arrive (rows) against where they are read (columns), folded until it fits: into CPUs, cores,
/// LLC groups or nodes. Rows and columns are the same groups, those without packets left out.
struct HeatMap {
    affinityd::locality::NearLevel level = affinityd::locality::NearLevel::cpu;
    std::vector<unsigned> groups;           ///< each by its lowest CPU, ascending
    std::vector<std::vector<double>> cells; ///< part of what arrives in the row's group, 0..1
    std::vector<double> arrivals;           ///< part of all reads that arrives in the group, 0..1
    std::size_t left_out = 0;               ///< groups beyond `most`, those with the fewest reads
};

/// The finest level that has at most `most` groups, else nodes; `most` > 0.
[[nodiscard]] HeatMap fold(const affinityd::locality::ReadMatrix& matrix,
                           const affinityd::locality::Nearness& near, std::size_t most);

/// What its rows and columns are: "by CPU", "by core, each named by its lowest CPU".
[[nodiscard]] std::string scale_of(const HeatMap& map);

/// As lines for a terminal: percentages while they fit in the page, else shades. No line is wider than the
/// page; width 0 counts as 80 columns.
[[nodiscard]] std::string heat_text(const affinityd::locality::ReadMatrix& matrix,
                                    const affinityd::locality::Nearness& near, const Page& page);

/// One page: the figures of the busiest processes and of all, the heat map, what brings packets to each CPU,
/// remarks, and one sentence that says what to do.
[[nodiscard]] std::string locality_text(const LocalityReport& report,
                                        const affinityd::locality::Nearness& near, const Page& page);

} // namespace affinityctl
