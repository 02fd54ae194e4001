// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/models/picture.hpp"

#include "affinityctl/views/models/picture_bars.hpp"
#include "affinityctl/views/models/picture_curves.hpp"
#include "affinityctl/views/models/picture_style.hpp"
#include "affinityctl/views/picture_notes.hpp"
#include "affinityctl/views/svg.hpp"

#include <fmt/format.h>

namespace affinityctl {

using namespace affinityd::ttcp;

namespace {

constexpr const char* picture_title = "The affinity models side by side";
constexpr double models_head = 78, title_height = 26, models_edge = 24;

double height_of(const WorkView& view) {
    return title_height + (view.is_curve() ? height_of_curves() : height_of_bars(view));
}

void draw_models(Svg& svg, double y, const std::vector<std::string>& labels) {
    double x = models_margin;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        svg.rect(x, y - 10, 12, 12, model_color(i));
        svg.text(x + 18, y, labels[i], 12);
        x += 40 + 8 * static_cast<double>(labels[i].size());
    }
}

std::string svg_of_nothing(const ModelsReport& report) {
    Svg svg(models_page, models_head, picture_title);
    svg.text(models_margin, 28, picture_title, 18);
    svg.text(models_margin, 56, ending_of(report), 12);
    return svg.finish();
}

} // namespace

std::string models_svg(const ModelsReport& report, const std::vector<WorkView>& views) {
    if (!has_rounds(report)) return svg_of_nothing(report);
    const auto labels = labels_of(report);
    const auto note = fmt::format("{}. {}. Whiskers: 95 % intervals. {}", headline_of(report, views),
                                  report.setup, notes_of(report, views));
    const auto lines = note_lines(std::span(&note, 1), models_page - models_margin - models_edge, 11);
    double height = models_head;
    for (const auto& view : views)
        height += height_of(view);
    Svg svg(models_page, height + 24 + note_leading * static_cast<double>(lines.size()), picture_title);
    svg.text(models_margin, 28, picture_title, 18);
    if (report.outcome != affinityd::measure::Outcome::done)
        svg.text(models_margin + 330, 28, "not finished: " + report.reason, 12);
    draw_models(svg, 56, labels);
    double y = models_head;
    for (const auto& view : views) {
        svg.text(models_margin, y + 14, title_of(view), 15);
        if (view.is_curve())
            draw_curves(svg, y + title_height, view);
        else
            draw_bars(svg, y + title_height, view, labels);
        y += height_of(view);
    }
    draw_notes(svg, models_margin, y, lines, 11);
    return svg.finish();
}

} // namespace affinityctl
