// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/models/work_view.hpp"

#include "affinityctl/values/counted.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

namespace affinityctl {

using namespace affinityd::ttcp;
namespace measure = affinityd::measure;

namespace {

/// Above this part of all CPU time, what others did is worth a sentence.
constexpr double quiet_part = 0.1;

std::string words_of(Work work) {
    return work == Work::answer ? "answer requests" : std::string(to_string(work));
}

bool has_counters(const std::vector<WorkView>& views) {
    return std::ranges::any_of(views, [](const WorkView& view) {
        return std::ranges::any_of(view.points, [](const PointView& point) {
            return std::ranges::any_of(point.models, [](const ModelSummary& model) {
                return model.per_bit.cache_misses.mean.has_value();
            });
        });
    });
}

} // namespace

bool WorkView::has_cycles() const {
    return std::ranges::all_of(points, [](const PointView& point) {
        return std::ranges::all_of(point.models, [](const ModelSummary& model) {
            return model.rounds == 0 || model.cost.cycles_per_bit.total.has_value();
        });
    });
}

std::vector<WorkView> work_views(const ModelsReport& report) {
    std::vector<WorkView> views;
    for (const auto& each : report.points) {
        auto at = std::ranges::find(views, each.point.work, &WorkView::work);
        if (at == views.end()) at = views.insert(views.end(), WorkView{each.point.work, {}});
        at->points.push_back({each.point, summarize(each.models)});
    }
    return views;
}

std::vector<std::string> labels_of(const ModelsReport& report) {
    std::vector<std::string> labels;
    std::map<affinityd::Model, unsigned> seen;
    if (report.points.empty()) return labels;
    for (const auto& result : report.points.front().models) {
        const unsigned number = ++seen[result.model];
        labels.push_back(number == 1 ? std::string(to_string(result.model))
                                     : fmt::format("{} ({})", to_string(result.model), number));
    }
    return labels;
}

std::string title_of(const WorkView& view) {
    std::string what(to_string(view.work));
    what.front() = static_cast<char>(what.front() - 'a' + 'A');
    if (view.is_curve()) return what + ", by size";
    const auto size = size_text(view.points.front().point);
    return view.work == Work::answer ? fmt::format("{}, {} requests", what, size)
                                     : fmt::format("{}, {} at a time", what, size);
}

std::string headline_of(const ModelsReport& report, const std::vector<WorkView>& views) {
    std::string works;
    std::size_t sizes = 0, rounds = 0;
    for (const auto& view : views) {
        works += (works.empty() ? "" : &view == &views.back() ? " and " : ", ") + words_of(view.work);
        sizes = std::max(sizes, view.points.size());
        for (const auto& point : view.points)
            for (const auto& model : point.models)
                rounds = std::max<std::size_t>(rounds, model.rounds);
    }
    return fmt::format("{}, {}, {}{} of {:g} s for each model on CPUs {}",
                       counted(report.connections, "connection"), works,
                       sizes > 1 ? fmt::format("{} sizes, ", sizes) : "", counted(rounds, "round"),
                       report.round_seconds, report.cpus.to_list());
}

std::string summary_of(const ModelsReport& report, const std::vector<WorkView>& views) {
    const auto labels = labels_of(report);
    std::string text;
    for (const auto& view : views) {
        const auto& last = view.points.back();
        text +=
            fmt::format("{}{}, {}:", text.empty() ? "" : "; ", to_string(view.work), size_text(last.point));
        for (std::size_t i = 0; i < last.models.size(); ++i) {
            const auto& model = last.models[i];
            const auto rate = model.exchanges
                                  ? interval_text(model.exchanges->per_second, 1, 0) + " requests/s"
                                  : interval_text(model.bits_per_second, 1e9, 2) + " Gbit/s";
            text += fmt::format("{} {} {}", i == 0 ? "" : ",", labels[i], rate);
            if (i > 0) text += ": " + describe(model.gain);
        }
    }
    return text;
}

std::string notes_of(const ModelsReport& report, const std::vector<WorkView>& views) {
    const auto labels = labels_of(report);
    auto text = fmt::format(
        "Harmonic means of rates, means of costs and counts, with 95 % intervals (bootstrap). Changes are "
        "against "
        "{}, and their intervals hold all together for each size. Cost by {}; {}. Interrupts are those of "
        "devices; "
        "they, IPIs and NET_RX softirqs are of the whole machine, the rest is of the processes under test.",
        labels.empty() ? "the first" : labels.front(), report.cycles_source, report.parts_note);
    if (!has_counters(views)) text += " Cache misses: no hardware counters here.";
    if (report.busy_before.value_or(0) > quiet_part)
        text += fmt::format(" Other programs used {:.0f} % of the CPU time before it began: what seems a "
                            "difference may be theirs, and small ones are hidden.",
                            100 * *report.busy_before);
    return text;
}

std::string ending_of(const ModelsReport& report) {
    return fmt::format("not finished: {}: {}{}", measure::to_string(report.outcome), report.reason,
                       has_rounds(report) ? "" : ", before the first round was measured; nothing is kept");
}

std::string interval_text(const std::optional<measure::Interval>& interval, double unit, int digits) {
    if (!interval) return "-";
    return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", interval->estimate / unit, digits,
                       interval->low / unit, digits, interval->high / unit, digits);
}

} // namespace affinityctl
