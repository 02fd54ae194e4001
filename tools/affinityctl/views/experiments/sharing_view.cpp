// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/experiments/sharing_view.hpp"

#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/experiments/figure_words.hpp"
#include "affinityctl/views/table.hpp"

#include <fmt/format.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;
using nlohmann::json;

namespace {

/// "a: 0 0  b: 1 1"; of the scheduler's own placing the CPUs that it had.
std::string sharing_cpus(const experiments::PlacedThreads& placed) {
    if (placed.placing == experiments::Placing::scheduler) return placed.cpus[0].to_list();
    return fmt::format("a: {} {}  b: {} {}", placed.cpus[0].to_list(), placed.cpus[2].to_list(),
                       placed.cpus[1].to_list(), placed.cpus[3].to_list());
}

std::string miss_words(const experiments::PlacingFigures& figures) {
    return figures.miss_rate ? fmt::format("{:.2f} %", 100 * *figures.miss_rate) : "-";
}

std::string longer_cell(const experiments::PlacingFigures& figures) {
    return figures.placing == experiments::Placing::scheduler ? "-" : change_words(figures.longer);
}

std::string sharing_method(const experiments::SharingTimes& times, const MeasuredOn& on) {
    return fmt::format("4 threads, two on each of two variables, {} additions each; {} of each placing; "
                       "mean times with 95 % intervals; it took {:.1f} s",
                       grouped(times.how.additions), counted(times.rounds(), "round"), on.seconds);
}

std::string sharing_title(const MeasuredOn& on) {
    return "Threads that write to the same cache lines" +
           (on.model.empty() ? std::string() : " (" + printable(on.model) + ")");
}

std::vector<TimeBar> sharing_bars(const experiments::SharingReading& reading) {
    std::vector<TimeBar> bars;
    for (const auto& one : reading.placings)
        bars.push_back({.label = std::string(name_of(one.placing)),
                        .seconds = one.seconds,
                        .note = one.miss_rate ? miss_words(one) + " L1d misses" : "",
                        .kind = static_cast<unsigned>(one.placing)});
    return bars;
}

} // namespace

std::string sharing_text(const experiments::SharingTimes& times, const experiments::SharingReading& reading,
                         const MeasuredOn& on, const Page& page) {
    auto text =
        bold(sharing_title(on), page.color) + "\n" + wrapped(sharing_method(times, on), "  ", page) + "\n";
    Table table({"PLACING", "MS PER RUN", "THAN THE SCHEDULER", "L1D MISSES", "CPUS"});
    for (std::size_t i = 0; i < reading.placings.size(); ++i) {
        const auto& one = reading.placings[i];
        table.add({std::string(name_of(one.placing)), ms_words(one.seconds), longer_cell(one),
                   miss_words(one), sharing_cpus(times.placings[i].placed)});
    }
    text += table.folded(page) + "\n";
    if (const auto bars = time_bars(sharing_bars(reading), page); !bars.empty()) text += bars + "\n";
    for (const auto& finding : reading.findings)
        text += wrapped(as_sentence(finding), "* ", page);
    if (!times.no_counters.empty())
        text += wrapped(as_sentence("L1d misses: " + times.no_counters), "* ", page);
    for (const auto& remark : on.remarks)
        text += wrapped(as_sentence(remark), "* ", page);
    return text + wrapped(reading.meaning, "", page);
}

json sharing_json(const experiments::SharingTimes& times, const experiments::SharingReading& reading,
                  const MeasuredOn& on) {
    json placings = json::array();
    for (std::size_t i = 0; i < reading.placings.size(); ++i) {
        const auto& one = reading.placings[i];
        json cpus = json::array();
        for (const auto& set : times.placings[i].placed.cpus)
            cpus.push_back(set.to_list());
        placings.push_back({{"placing", key_of(one.placing)},
                            {"threads", std::move(cpus)},
                            {"ms", ms_json(one.seconds)},
                            {"median_ms", one.median * 1e3},
                            {"l1d_miss_rate", one.miss_rate ? json(*one.miss_rate) : json()},
                            {"longer_than_scheduler", change_json(one.longer)}});
    }
    return {{"model", on.model},
            {"cpus", on.cpus},
            {"rounds", times.rounds()},
            {"additions", times.how.additions},
            {"placings", std::move(placings)},
            {"no_counters", times.no_counters.empty() ? json() : json(times.no_counters)},
            {"findings", reading.findings},
            {"meaning", reading.meaning},
            {"remarks", on.remarks},
            {"seconds", on.seconds}};
}

std::string sharing_svg(const experiments::SharingTimes& times, const experiments::SharingReading& reading,
                        const MeasuredOn& on) {
    BarCaptions captions{.title = sharing_title(on), .subtitle = sharing_method(times, on), .notes = {}};
    for (const auto& finding : reading.findings)
        captions.notes.push_back(as_sentence(finding));
    if (!times.no_counters.empty()) captions.notes.push_back(as_sentence("L1d misses: " + times.no_counters));
    for (const auto& remark : on.remarks)
        captions.notes.push_back(as_sentence(remark));
    captions.notes.push_back(reading.meaning);
    return time_bars_svg(captions, sharing_bars(reading));
}

} // namespace affinityctl
