// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/models_chart.hpp"

#include "affinityctl/views/svg.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using namespace affinityd::ttcp;

double top_of(const std::vector<ModelSummary>& summaries) {
    double top = 0;
    for (const auto& summary : summaries)
        if (summary.bits_per_second) top = std::max(top, summary.bits_per_second->high);
    return top;
}

/// Lines of at most so many characters, broken at spaces.
std::vector<std::string> wrapped(std::string_view text, std::size_t most) {
    std::vector<std::string> lines;
    while (text.size() > most) {
        const auto space = text.rfind(' ', most);
        const auto end = space == std::string_view::npos || space == 0 ? most : space;
        lines.emplace_back(text.substr(0, end));
        text.remove_prefix(text[end] == ' ' ? end + 1 : end);
    }
    lines.emplace_back(text);
    return lines;
}

constexpr double left_edge = 90, right = 330, bar = 26, gap = 14, head = 60, page = 900;
constexpr const char* colors[] = {"#8c8c8c", "#0072b2", "#e69f00", "#009e73"};

/// One bar with its whisker and its figures.
void draw_bar(Svg& svg, double y, double scale, const ModelSummary& summary, const std::string& label,
              bool is_base) {
    const double middle = y + bar / 2;
    svg.text(left_edge - 8, middle + 5, label, 13, Svg::Anchor::end);
    if (!summary.bits_per_second) return;
    const auto& rate = *summary.bits_per_second;
    svg.rect(left_edge, y, rate.estimate * scale, bar, colors[static_cast<std::size_t>(summary.model)]);
    svg.line(left_edge + rate.low * scale, middle, left_edge + rate.high * scale, middle, "black", 1.5);
    for (const double end : {rate.low, rate.high})
        svg.line(left_edge + end * scale, middle - 6, left_edge + end * scale, middle + 6, "black", 1.5);
    std::string text = fmt::format("{:.2f}", rate.estimate / 1e9);
    if (!is_base) text += fmt::format("; {}; cost {}", describe(summary.gain), describe(summary.cost));
    svg.text(left_edge + rate.high * scale + 8, middle + 5, text, 11);
}

} // namespace

std::vector<std::string> labels_of(const std::vector<ModelSummary>& summaries) {
    std::vector<std::string> labels;
    std::map<affinityd::Model, unsigned> seen;
    for (const auto& summary : summaries) {
        const unsigned number = ++seen[summary.model];
        labels.push_back(number == 1 ? std::string(to_string(summary.model))
                                     : fmt::format("{} ({})", to_string(summary.model), number));
    }
    return labels;
}

std::string bars(const std::vector<ModelSummary>& summaries, unsigned width) {
    const double top = top_of(summaries);
    if (top <= 0) return {};
    std::string text;
    const auto labels = labels_of(summaries);
    for (std::size_t i = 0; i < summaries.size(); ++i) {
        const auto& rate = summaries[i].bits_per_second;
        if (!rate) continue;
        const auto columns = [&](double value) {
            return static_cast<std::size_t>(std::lround(std::max(0.0, value) / top * width));
        };
        const std::string drawn =
            std::string(columns(rate->low), '#') + std::string(columns(rate->high) - columns(rate->low), '+');
        text += fmt::format("{:<11} {:<{}} {:.2f} Gbit/s ({:.2f} to {:.2f})\n", labels[i], drawn, width,
                            rate->estimate / 1e9, rate->low / 1e9, rate->high / 1e9);
    }
    return text;
}

std::string models_svg(const ModelsReport& report, const std::vector<ModelSummary>& summaries) {
    const auto notes = wrapped(
        fmt::format("{} connections, {}, {} rounds of {:g} s each on CPUs {}. {}. Whiskers: 95 % intervals. "
                    "Cost: {}.",
                    report.connections, report.direction, summaries.empty() ? 0 : summaries.front().rounds,
                    report.round_seconds, report.cpus.to_list(), report.setup, report.cycles_source),
        120);
    const double chart = static_cast<double>(summaries.size()) * (bar + gap);
    Svg svg(page, head + chart + 30 + 18 * static_cast<double>(notes.size()),
            "Throughput of the affinity models");
    svg.text(left_edge, 26, "Throughput by affinity model, Gbit/s", 17);
    svg.text(left_edge, 46,
             report.outcome == affinityd::measure::Outcome::done ? "gain and cost against the first"
                                                                 : "not finished: " + report.reason,
             12);
    const double top = top_of(summaries);
    const double scale = top > 0 ? (page - left_edge - right) / top : 0;
    const auto labels = labels_of(summaries);
    double y = head;
    for (std::size_t i = 0; i < summaries.size(); ++i, y += bar + gap)
        draw_bar(svg, y, scale, summaries[i], labels[i], i == 0);
    svg.line(left_edge, head - 4, left_edge, y, "black");
    for (const auto& note : notes)
        svg.text(left_edge, y += 18, note, 11);
    return svg.finish();
}

} // namespace affinityctl
