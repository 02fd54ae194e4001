// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/models/picture.hpp"

#include "affinityctl/present/svg.hpp"
#include "affinityctl/views/models/panel.hpp"
#include "affinityctl/views/models/picture_style.hpp"
#include "affinityctl/views/models/work_view.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

using namespace affinityd::ttcp;

namespace {

using namespace affinityd::ttcp;
using affinityd::measure::Interval;
namespace measure = affinityd::measure;

std::optional<Interval> scaled(const std::optional<Interval>& interval, double factor) {
    if (!interval) return std::nullopt;
    return Interval{interval->estimate * factor, interval->low * factor, interval->high * factor};
}

/// In per cent; the first model is the zero line itself.
std::optional<Interval> percent(const measure::Comparison& change) {
    if (change.verdict == measure::Verdict::not_enough) return std::nullopt;
    return scaled(change.change, 100);
}

/// "64K", as the axis has room for.
std::string short_text(std::size_t bytes) {
    auto text = size_text(bytes);
    for (const std::string_view unit : {" KiB", " MiB", " B"})
        if (text.ends_with(unit))
            text.replace(text.size() - unit.size(), unit.size(), unit == " B" ? "" : unit.substr(1, 1));
    return text;
}

template <class Get>
Panel panel_of(const WorkView& view, std::string title, bool is_log, Get get) {
    Panel panel{std::move(title), {}, {}, is_log};
    for (const auto& point : view.points) {
        auto name = short_text(point.point.bytes);
        if (view.work == Work::answer && point.point.bytes != point.point.response_bytes)
            name += ":" + short_text(point.point.response_bytes);
        panel.positions.push_back(std::move(name));
    }
    for (std::size_t i = 0; i < view.points.front().models.size(); ++i) {
        Curve curve{model_color(i), {}};
        for (const auto& point : view.points)
            curve.points.push_back(get(point.models[i]));
        panel.curves.push_back(std::move(curve));
    }
    return panel;
}

std::vector<Panel> panels_of(const WorkView& view) {
    if (view.work == Work::answer)
        return {panel_of(view, "Median latency, us", false,
                         [](const ModelSummary& m) {
                             return scaled(m.exchanges ? m.exchanges->p50 : std::nullopt, 1e6);
                         }),
                panel_of(view, "Latency of 99 of 100, us", false,
                         [](const ModelSummary& m) {
                             return scaled(m.exchanges ? m.exchanges->p99 : std::nullopt, 1e6);
                         }),
                panel_of(view, "CPU time of a request, us", false,
                         [](const ModelSummary& m) { return scaled(m.cost.cpu_seconds.total, 1e6); })};
    return {panel_of(view, "Throughput, Gbit/s", false,
                     [](const ModelSummary& m) { return scaled(m.bits_per_second, 1e-9); }),
            panel_of(view, "Gain, %", false, [](const ModelSummary& m) { return percent(m.gain); }),
            view.has_cycles()
                ? panel_of(view, "Cost, GHz/Gbps (each line doubles)", true,
                           [](const ModelSummary& m) { return m.cost.cycles_per_bit.total; })
                : panel_of(view, "CPU ms of a gigabit (each line doubles)", true,
                           [](const ModelSummary& m) { return scaled(m.cost.cpu_seconds.total, 1e3); })};
}

/// Pixels that draw_curves takes downwards.
double height_of_curves() { return panel_height + 20; }

/// Several sizes: panels side by side with a curve for each model. Throughput, what it gained and what it
/// cost by size; or both latencies and the CPU time of a request. Draws below `y`.
void draw_curves(Svg& svg, double y, const WorkView& view) {
    double x = models_margin - 50;
    for (const auto& panel : panels_of(view)) {
        draw_panel(svg, x, y, panel);
        x += panel_width + 40;
    }
}

using namespace affinityd::ttcp;
using affinityd::measure::Interval;

constexpr double bar_height = 24, bar_gap = 10, chart_heading = 30, chart_foot = 14, room_for_text = 400;
constexpr std::array<std::string_view, 3> part_colors{"#56606e", "#a9b4c2", "#d55e00"};
constexpr std::array<std::string_view, 3> part_names{"processes", "softirq", "interrupts"};

/// One piece of a bar.
struct Piece {
    double value = 0;
    std::string_view color;
};

struct Drawn {
    std::vector<Piece> pieces; ///< side by side
    Interval whisker;
    std::string figures;
};

/// Bars of one quantity on one scale, from zero.
struct Chart {
    std::string title;
    std::vector<std::optional<Drawn>> bars; ///< by model
    std::vector<std::string_view> legend{}; ///< of the pieces, coloured as parts are
};

std::string versus(const affinityd::measure::Comparison& change, bool is_first) {
    return is_first ? std::string() : "; " + describe(change);
}

Chart throughput_chart(const PointView& point) {
    Chart chart{"Throughput, Gbit/s", {}};
    for (std::size_t i = 0; i < point.models.size(); ++i) {
        const auto& model = point.models[i];
        auto& bar = chart.bars.emplace_back();
        if (!model.bits_per_second) continue;
        bar =
            Drawn{{{model.bits_per_second->estimate, model_color(i)}},
                  *model.bits_per_second,
                  fmt::format("{:.2f}{}", model.bits_per_second->estimate / 1e9, versus(model.gain, i == 0))};
    }
    return chart;
}

Chart latency_chart(const PointView& point, bool tail) {
    Chart chart{tail ? "Latency of 99 of 100 requests, us" : "Median latency, us", {}};
    for (std::size_t i = 0; i < point.models.size(); ++i) {
        const auto& exchanges = point.models[i].exchanges;
        auto& bar = chart.bars.emplace_back();
        if (!exchanges || !exchanges->p50 || !exchanges->p99) continue;
        const auto& shown = tail ? *exchanges->p99 : *exchanges->p50;
        bar = Drawn{{{shown.estimate, model_color(i)}},
                    shown,
                    fmt::format("{:.1f}{}", shown.estimate * 1e6,
                                versus(tail ? exchanges->p99_change : exchanges->p50_change, i == 0))};
    }
    return chart;
}

/// In cycles per bit; of requests, or where the frequency is not known, in CPU time.
Chart cost_chart(const WorkView& view) {
    const auto& point = view.points.front();
    const bool answers = view.work == Work::answer, cycles = !answers && view.has_cycles();
    const double scale = answers ? 1e6 : cycles ? 1 : 1e3;
    Chart chart{answers  ? "CPU time of a request, us"
                : cycles ? "Cost, GHz/Gbps"
                         : "CPU time of a gigabit, ms",
                {},
                {part_names.begin(), part_names.end()}};
    for (std::size_t i = 0; i < point.models.size(); ++i) {
        const auto& cost = cycles ? point.models[i].cost.cycles_per_bit : point.models[i].cost.cpu_seconds;
        auto& bar = chart.bars.emplace_back();
        if (!cost.total) continue;
        Drawn drawn{{},
                    *cost.total,
                    fmt::format("{:.2f}{}", cost.total->estimate * scale,
                                versus(point.models[i].cost.change, i == 0))};
        std::size_t color = 0;
        for (const auto* part : {&cost.processes, &cost.softirq, &cost.interrupts})
            drawn.pieces.push_back({*part ? (*part)->estimate : 0, part_colors[color++]});
        bar = std::move(drawn);
    }
    return chart;
}

std::vector<Chart> charts_of(const WorkView& view) {
    const auto& point = view.points.front();
    if (view.work == Work::answer)
        return {latency_chart(point, false), latency_chart(point, true), cost_chart(view)};
    return {throughput_chart(point), cost_chart(view)};
}

void draw_one(Svg& svg, double y, double scale, const Drawn& drawn) {
    const double middle = y + bar_height / 2;
    double x = models_margin;
    for (const auto& piece : drawn.pieces) {
        svg.rect(x, y, piece.value * scale, bar_height, piece.color);
        x += piece.value * scale;
    }
    const double low = models_margin + drawn.whisker.low * scale;
    const double high = models_margin + drawn.whisker.high * scale;
    svg.line(low, middle, high, middle, "black", 1.5);
    for (const double end : {low, high})
        svg.line(end, middle - 6, end, middle + 6, "black", 1.5);
    svg.text(std::max(high, x) + 8, middle + 4, drawn.figures, 11);
}

double height_of(const Chart& chart) {
    return chart_heading + static_cast<double>(chart.bars.size()) * (bar_height + bar_gap) + chart_foot;
}

void draw_legend(Svg& svg, double y, const Chart& chart) {
    double x = models_margin + 250;
    for (std::size_t i = 0; i < chart.legend.size(); ++i) {
        svg.rect(x, y - 9, 10, 10, part_colors[i]);
        svg.text(x + 15, y, chart.legend[i], 11);
        x += 100;
    }
}

void draw_chart(Svg& svg, double y, const Chart& chart, const std::vector<std::string>& labels) {
    svg.text(models_margin, y + 16, chart.title, 13);
    draw_legend(svg, y + 16, chart);
    double top = 0;
    for (const auto& each : chart.bars)
        if (each) top = std::max({top, each->whisker.high, each->whisker.estimate});
    const double scale = top > 0 ? (models_page - models_margin - room_for_text) / top : 0;
    double at = y + chart_heading;
    for (std::size_t i = 0; i < chart.bars.size(); ++i, at += bar_height + bar_gap) {
        svg.text(models_margin - 8, at + bar_height / 2 + 4, labels[i], 12, Svg::Anchor::end);
        if (chart.bars[i]) draw_one(svg, at, scale, *chart.bars[i]);
    }
    svg.line(models_margin, y + chart_heading - 4, models_margin, at - bar_gap + 4, "black");
}

/// Pixels that draw_bars takes downwards.
double height_of_bars(const WorkView& view) {
    double sum = 0;
    for (const auto& chart : charts_of(view))
        sum += height_of(chart);
    return sum;
}

/// One size: a bar for each model with the whisker of its interval, throughput and cost in its parts, or both
/// latencies and the CPU time of a request. Draws below `y`.
void draw_bars(Svg& svg, double y, const WorkView& view, const std::vector<std::string>& labels) {
    for (const auto& chart : charts_of(view)) {
        draw_chart(svg, y, chart, labels);
        y += height_of(chart);
    }
}

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
