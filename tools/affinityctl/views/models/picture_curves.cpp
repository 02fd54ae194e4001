// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/models/picture_curves.hpp"

#include "affinityctl/views/models/panel.hpp"
#include "affinityctl/views/models/picture_style.hpp"

namespace affinityctl {

using namespace affinityd::ttcp;
using affinityd::measure::Interval;
namespace measure = affinityd::measure;

namespace {

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

} // namespace

double height_of_curves() { return panel_height + 20; }

void draw_curves(Svg& svg, double y, const WorkView& view) {
    double x = models_margin - 50;
    for (const auto& panel : panels_of(view)) {
        draw_panel(svg, x, y, panel);
        x += panel_width + 40;
    }
}

} // namespace affinityctl
