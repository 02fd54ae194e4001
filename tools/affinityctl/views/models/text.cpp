// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/models/text.hpp"

#include "affinityctl/views/models/bars.hpp"
#include "affinityctl/views/models/load_tables.hpp"
#include "affinityctl/views/models/machine_tables.hpp"
#include "affinityctl/views/page.hpp"
#include "affinityctl/views/table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityctl {

using namespace affinityd::ttcp;
namespace measure = affinityd::measure;

namespace {

constexpr std::size_t least_bar = 8, most_bar = 40, beside_bar = 54; // sizes, labels and figures
constexpr std::size_t note_columns = 110;

unsigned bar_columns(const Page& page) {
    if (page.width == 0) return most_bar;
    return static_cast<unsigned>(std::clamp(page.width, beside_bar + least_bar, beside_bar + most_bar) -
                                 beside_bar);
}

std::string work_text(const WorkView& view, const std::vector<std::string>& labels, const Page& page) {
    const bool answers = view.work == Work::answer;
    auto text = fmt::format("{}\n{}", bold(title_of(view), page.color), gain_table(view, labels, page));
    if (const auto drawn = bars(view, labels, bar_columns(page)); !drawn.empty()) text += "\n" + drawn;
    const char* what = answers             ? "CPU time of a request"
                       : view.has_cycles() ? "GHz/Gbps"
                                           : "CPU time of a gigabit";
    text += fmt::format("\n{}{} in its parts:\n{}", what, answers ? "," : "", cost_table(view, labels, page));
    return text + fmt::format("\nMeanwhile:\n{}\n", rate_table(view, labels, page));
}

/// Of the point that stands for the report.
std::string machine_text(const ModelsReport& report, const std::vector<WorkView>& views,
                         const std::vector<std::string>& labels, const Page& page) {
    const auto* main = main_point(report);
    for (const auto& view : views)
        for (const auto& point : view.points) {
            if (main == nullptr || point.point != main->point) continue;
            const auto where = report.points.size() > 1
                                   ? fmt::format(" ({}, {})", to_string(view.work), size_text(point.point))
                                   : std::string();
            return fmt::format("\nAll that ran on each CPU meanwhile, over all rounds{}:\n{}", where,
                               cpu_table(point, labels, page)) +
                   interrupt_tables(point, labels, page);
        }
    return {};
}

} // namespace

std::string models_text(const ModelsReport& report, const std::vector<WorkView>& views, const Page& page) {
    if (!has_rounds(report)) return wrapped(ending_of(report) + ".", "", page);
    const auto labels = labels_of(report);
    auto text =
        wrapped(fmt::format("{}, in {:.0f} s", headline_of(report, views), report.seconds), "", page) +
        wrapped(report.setup, "", page) + "\n";
    for (const auto& view : views)
        text += work_text(view, labels, page);
    const auto columns = page.width == 0 ? note_columns : std::min(page.width, note_columns);
    text += wrapped(notes_of(report, views), "", Page{.width = columns});
    text += machine_text(report, views, labels, page);
    if (report.outcome != measure::Outcome::done) text += "\n" + ending_of(report) + "\n";
    return text;
}

} // namespace affinityctl
