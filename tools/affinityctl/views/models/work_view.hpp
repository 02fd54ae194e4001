// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/models/report.hpp"
#include "affinity-ttcp/models/summary.hpp"

#include <string>
#include <vector>

namespace affinityctl {

/// One size of a curve, with its models in the order of the report.
struct PointView {
    affinityd::ttcp::LoadPoint point;
    std::vector<affinityd::ttcp::ModelSummary> models;
};

/// The curve of one kind of work: all sizes of it, in the order of the report.
struct WorkView {
    affinityd::ttcp::Work work;
    std::vector<PointView> points;
    [[nodiscard]] bool is_curve() const { return points.size() > 1; }
    /// Cost is known in cycles; else, where nobody knows the frequency, in CPU time.
    [[nodiscard]] bool has_cycles() const;
};

/// The report by work, summarized once for all that is printed of it.
[[nodiscard]] std::vector<WorkView> work_views(const affinityd::ttcp::ModelsReport& report);

/// "none", "irq", ...; a model that is listed twice (an A/A run) gets a number: "none (2)".
[[nodiscard]] std::vector<std::string> labels_of(const affinityd::ttcp::ModelsReport& report);

/// "Receive, 64 KiB at a time", "Receive, by size", "Answer, 1 B requests".
[[nodiscard]] std::string title_of(const WorkView& view);

/// "8 connections, receive and transmit, 5 sizes, 10 rounds of 2 s for each model on CPUs 0-7".
[[nodiscard]] std::string headline_of(const affinityd::ttcp::ModelsReport& report,
                                      const std::vector<WorkView>& views);

/// One line for the history: of each kind of work the last size, with the change against the first model.
[[nodiscard]] std::string summary_of(const affinityd::ttcp::ModelsReport& report,
                                     const std::vector<WorkView>& views);

/// What the figures are and what they do not tell; sentences.
[[nodiscard]] std::string notes_of(const affinityd::ttcp::ModelsReport& report,
                                   const std::vector<WorkView>& views);

/// "not finished: killed: stopped by a signal", and whether there are no figures.
[[nodiscard]] std::string ending_of(const affinityd::ttcp::ModelsReport& report);

/// "1.23 (1.20 to 1.26)" in multiples of `unit`; "-" where there is none.
[[nodiscard]] std::string interval_text(const std::optional<affinityd::measure::Interval>& interval,
                                        double unit, int digits);

} // namespace affinityctl
