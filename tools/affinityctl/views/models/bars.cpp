// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/models/bars.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace affinityctl {

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
