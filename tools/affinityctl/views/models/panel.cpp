// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/models/panel.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace affinityctl {

namespace {

constexpr double axis_left = 48, axis_top = 34, axis_right = 10, axis_bottom = 34;

/// The vertical axis: values of its lines, and where a value is.
class Axis {
  public:
    Axis(const Panel& panel, double top, double bottom) : log_(panel.is_log), top_(top), bottom_(bottom) {
        std::optional<double> low, high;
        for (const auto& curve : panel.curves)
            for (const auto& point : curve.points) {
                if (!point || (log_ && point->low <= 0)) continue;
                low = std::min(low.value_or(point->low), point->low);
                high = std::max(high.value_or(point->high), point->high);
            }
        if (!low) return;
        lines_ = log_ ? doublings(*low, *high) : round_steps(std::min(0.0, *low), std::max(0.0, *high));
    }
    [[nodiscard]] const std::vector<double>& lines() const { return lines_; }
    [[nodiscard]] double y(double value) const {
        const auto place = [&](double v) { return log_ ? std::log2(std::max(v, 1e-30)) : v; };
        const double low = place(lines_.front()), high = place(lines_.back());
        const double part = high > low ? (place(value) - low) / (high - low) : 0;
        return bottom_ - std::clamp(part, 0.0, 1.0) * (bottom_ - top_);
    }

  private:
    static std::vector<double> doublings(double low, double high) {
        constexpr int most = 40;
        const auto last = static_cast<int>(std::ceil(std::log2(high)));
        const auto first = static_cast<int>(std::floor(std::log2(low)));
        std::vector<double> lines;
        for (int power = std::max(first, last - most); power <= std::max(last, first + 1); ++power)
            lines.push_back(std::ldexp(1.0, power));
        return lines;
    }

    bool log_;
    double top_, bottom_;
    std::vector<double> lines_;
};

std::string value_text(double value) {
    const auto text = fmt::format("{:.6g}", value);
    return text == "-0" ? "0" : text;
}

void draw_frame(Svg& svg, double left, double right, double top, double bottom, const Axis& axis) {
    for (const double value : axis.lines()) {
        svg.line(left, axis.y(value), right, axis.y(value), value == 0 ? "#888888" : "#dddddd");
        svg.text(left - 6, axis.y(value) + 4, value_text(value), 10, Svg::Anchor::end);
    }
    svg.line(left, top, left, bottom, "black");
}

/// Models stand a little beside each other, so that their whiskers can be told apart.
void draw_curve(Svg& svg, const Curve& curve, const std::vector<double>& xs, double aside, const Axis& axis,
                bool is_log) {
    std::optional<std::pair<double, double>> before;
    for (std::size_t i = 0; i < curve.points.size() && i < xs.size(); ++i) {
        const auto& point = curve.points[i];
        if (!point || (is_log && point->low <= 0)) {
            before.reset();
            continue;
        }
        const double x = xs[i] + aside, y = axis.y(point->estimate);
        if (before) svg.line(before->first, before->second, x, y, curve.color, 1.6);
        svg.line(x, axis.y(point->low), x, axis.y(point->high), curve.color, 1.4);
        for (const double end : {point->low, point->high})
            svg.line(x - 3, axis.y(end), x + 3, axis.y(end), curve.color, 1.4);
        svg.circle(x, y, 2.6, curve.color);
        before = {x, y};
    }
}

} // namespace

std::vector<double> round_steps(double low, double high) {
    constexpr double most = 6;
    const double span = high > low ? high - low : 1;
    double step = std::pow(10, std::floor(std::log10(span / most)));
    for (const double factor : {2.0, 2.5, 2.0}) {
        if (std::ceil(high / step) - std::floor(low / step) <= most) break;
        step *= factor;
    }
    std::vector<double> steps;
    const auto first = std::floor(low / step), last = std::max(first + 1, std::ceil(high / step));
    for (double at = first; at <= last; ++at)
        steps.push_back(at * step);
    return steps;
}

void draw_panel(Svg& svg, double x, double y, const Panel& panel) {
    const double left = x + axis_left, right = x + panel_width - axis_right;
    const double top = y + axis_top, bottom = y + panel_height - axis_bottom;
    svg.text(left, y + 16, panel.title, 12);
    const Axis axis(panel, top, bottom);
    if (axis.lines().empty()) {
        svg.text(left, top + 20, "not known", 11);
        return;
    }
    draw_frame(svg, left, right, top, bottom, axis);
    std::vector<double> xs;
    const double step =
        (right - left) / static_cast<double>(std::max<std::size_t>(panel.positions.size(), 1));
    for (std::size_t i = 0; i < panel.positions.size(); ++i) {
        xs.push_back(left + step * (static_cast<double>(i) + 0.5));
        svg.text(xs.back(), bottom + 16, panel.positions[i], 10, Svg::Anchor::middle);
    }
    const double middle = (static_cast<double>(panel.curves.size()) - 1) / 2;
    const double apart = std::min(6.0, step / static_cast<double>(panel.curves.size() + 1));
    for (std::size_t i = 0; i < panel.curves.size(); ++i)
        draw_curve(svg, panel.curves[i], xs, (static_cast<double>(i) - middle) * apart, axis, panel.is_log);
}

using namespace affinityd::ttcp;

namespace {

/// A bar: solid up to `first`, then to `last`; nothing is drawn where `last` is 0.
struct Bar {
    double first = 0, last = 0;
    std::string figures;
};

Bar bar_of(const ModelSummary& summary) {
    if (const auto& exchanges = summary.exchanges; exchanges) {
        if (!exchanges->p50 || !exchanges->p99) return {};
        return {exchanges->p50->estimate, exchanges->p99->estimate,
                fmt::format("p50 {:.1f} us, p99 {:.1f} us", exchanges->p50->estimate * 1e6,
                            exchanges->p99->estimate * 1e6)};
    }
    if (!summary.bits_per_second) return {};
    const auto& rate = *summary.bits_per_second;
    return {rate.low, rate.high, interval_text(rate, 1e9, 2) + " Gbit/s"};
}

std::size_t widest(const std::vector<std::string>& texts) {
    std::size_t most = 0;
    for (const auto& text : texts)
        most = std::max(most, text.size());
    return most;
}

} // namespace

std::string bars(const WorkView& view, const std::vector<std::string>& labels, unsigned width) {
    double top = 0;
    std::vector<std::string> sizes;
    for (const auto& point : view.points) {
        sizes.push_back(size_text(point.point));
        for (const auto& model : point.models)
            top = std::max(top, bar_of(model).last);
    }
    if (top <= 0) return {};
    std::string text;
    for (std::size_t at = 0; at < view.points.size(); ++at)
        for (std::size_t i = 0; i < view.points[at].models.size(); ++i) {
            const auto bar = bar_of(view.points[at].models[i]);
            if (bar.last <= 0) continue;
            const auto columns = [&](double value) {
                return static_cast<std::size_t>(std::lround(std::max(0.0, value) / top * width));
            };
            const auto drawn = std::string(columns(bar.first), '#') +
                               std::string(columns(bar.last) - columns(bar.first), '+');
            if (view.is_curve()) text += fmt::format("{:<{}}  ", i == 0 ? sizes[at] : "", widest(sizes));
            text += fmt::format("{:<{}}  {:<{}}  {}\n", labels[i], widest(labels), drawn, width, bar.figures);
        }
    return text;
}

} // namespace affinityctl
