// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/models/text.hpp"

#include "affinityctl/views/models/bars.hpp"
#include "affinityctl/views/models/load_tables.hpp"
#include "affinityctl/views/models/machine_tables.hpp"
#include "affinityctl/views/page.hpp"
#include "affinityctl/views/table.hpp"

#include <fmt/format.h>

namespace affinityctl {

using namespace affinityd::ttcp;
namespace measure = affinityd::measure;

namespace {

constexpr unsigned bar_columns = 40;
constexpr std::size_t note_columns = 110;

std::string work_text(const WorkView& view, const std::vector<std::string>& labels, bool color) {
    const bool answers = view.work == Work::answer;
    const bool has_cycles = view.points.front().models.front().cost.cycles_per_bit.total.has_value();
    auto text = fmt::format("{}\n{}", bold(title_of(view), color), gain_table(view, labels, color));
    if (const auto drawn = bars(view, labels, bar_columns); !drawn.empty()) text += "\n" + drawn;
    if (answers || has_cycles)
        text += fmt::format("\n{}:\n{}",
                            answers ? "CPU time of a request, in its parts" : "GHz/Gbps in its parts",
                            cost_table(view, labels, color));
    return text + fmt::format("\nMeanwhile:\n{}\n", rate_table(view, labels, color));
}

/// Of the point that stands for the report.
std::string machine_text(const ModelsReport& report, const std::vector<WorkView>& views,
                         const std::vector<std::string>& labels, bool color) {
    const auto* main = main_point(report);
    for (const auto& view : views)
        for (const auto& point : view.points) {
            if (main == nullptr || point.point != main->point) continue;
            const auto where = report.points.size() > 1
                                   ? fmt::format(" ({}, {})", to_string(view.work), size_text(point.point))
                                   : std::string();
            return fmt::format("\nAll that ran on each CPU meanwhile, over all rounds{}:\n{}", where,
                               cpu_table(point, labels, color)) +
                   interrupt_tables(point, labels, color);
        }
    return {};
}

} // namespace

std::string models_text(const ModelsReport& report, const std::vector<WorkView>& views, bool color) {
    const auto labels = labels_of(report);
    auto text =
        fmt::format("{}, in {:.0f} s\n{}\n\n", headline_of(report, views), report.seconds, report.setup);
    for (const auto& view : views)
        text += work_text(view, labels, color);
    text += wrapped(notes_of(report, views), "", Page{.width = note_columns});
    text += machine_text(report, views, labels, color);
    if (report.outcome != measure::Outcome::done)
        text += fmt::format("\nnot finished: {}: {}\n", measure::to_string(report.outcome), report.reason);
    return text;
}

} // namespace affinityctl
