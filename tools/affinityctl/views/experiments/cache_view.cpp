// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/experiments/cache_view.hpp"

#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/experiments/figure_words.hpp"
#include "affinityctl/views/table.hpp"
#include "measure/percent.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;
namespace measure = affinityd::measure;
using experiments::Place;
using nlohmann::json;

namespace {

std::vector<Place> places_of(const CacheView& view) {
    std::vector<Place> found;
    for (const Place place : experiments::places)
        if (view.seats.of(place)) found.push_back(place);
    return found;
}

const experiments::CellFigures* cell_of(const CacheView& view, std::uint64_t footprint, double quantum,
                                        Place place) {
    const auto found = std::ranges::find_if(view.reading.cells, [&](const experiments::CellFigures& cell) {
        return cell.footprint == footprint && cell.quantum_ms == quantum && cell.place == place;
    });
    return found == view.reading.cells.end() ? nullptr : &*found;
}

/// One quantum: a row for each working set, a column for each place.
std::string quantum_table(const CacheView& view, double quantum, const Page& page) {
    std::vector<std::string> head{"WORKING SET", "MS, SAME CPU"};
    for (const Place place : places_of(view))
        if (place != Place::kept) head.emplace_back(name_of(place));
    Table table(head);
    for (const auto footprint : view.times.how.footprints) {
        std::vector<std::string> row{experiments::bytes_words(footprint)};
        for (const Place place : places_of(view)) {
            const auto* cell = cell_of(view, footprint, quantum, place);
            if (cell == nullptr) continue;
            row.push_back(place == Place::kept ? ms_words(cell->seconds) : change_words(cell->longer));
        }
        table.add(row);
    }
    return fmt::format("Interrupted every {:g} ms: how much longer the next quantum takes\n", quantum) +
           table.folded(page) + "\n";
}

/// The curve of the shortest quantum, where losses are largest: one bar for each working set and place.
std::string loss_bars(const CacheView& view, const Page& page) {
    constexpr std::size_t label_columns = 36, usual_page = 80;
    const double quantum = *std::ranges::min_element(view.times.how.quanta_ms);
    double most = 0.01;
    for (const auto& cell : view.reading.cells)
        if (cell.quantum_ms == quantum) most = std::max(most, cell.longer.change.estimate);
    const std::size_t width = page.width == 0 ? usual_page : page.width;
    const auto columns = static_cast<double>(width > label_columns + 16 ? width - label_columns - 8 : 8);
    std::string text = fmt::format("The same as bars, every {:g} ms\n", quantum);
    for (const Place place : places_of(view)) {
        if (place == Place::kept) continue;
        for (const auto footprint : view.times.how.footprints) {
            const auto* cell = cell_of(view, footprint, quantum, place);
            if (cell == nullptr || cell->longer.verdict == measure::Verdict::not_enough) continue;
            const double loss = std::max(0.0, cell->longer.change.estimate);
            text +=
                fmt::format("{:<22} {:>10}  {} {} %\n", name_of(place), experiments::bytes_words(footprint),
                            std::string(static_cast<std::size_t>(std::lround(loss / most * columns)), '#'),
                            measure::percent(cell->longer.change.estimate, 1));
        }
    }
    return text + "\n";
}

std::string loss_table(const CacheView& view, const Page& page) {
    Table table({"QUANTUM", "WAS ON", "ON AVERAGE", "MOST", "AT", "SHOWN FOR"});
    for (const auto& loss : view.reading.losses)
        if (loss.of > 0)
            table.add({fmt::format("{:g} ms", loss.quantum_ms), std::string(name_of(loss.place)),
                       change_words(loss.mean), measure::signed_percent(loss.most, 1) + " %",
                       experiments::bytes_words(loss.at), fmt::format("{} of {}", loss.costly, loss.of)});
    return table.empty() ? std::string() : table.folded(page, 2) + "\n";
}

} // namespace

std::string cache_title(const MeasuredOn& on) {
    return "What it costs to lose the cache" +
           (on.model.empty() ? std::string() : " (" + printable(on.model) + ")");
}

std::string cache_method(const CacheView& view, const MeasuredOn& on) {
    return fmt::format("L1d {}, core's own {}, last level {}; polluter {}; CPU {}; {}; CPU time of "
                       "the quantum after an "
                       "interruption against one that left the cache alone; it took {:.0f} s",
                       experiments::bytes_words(view.seats.sizes.first),
                       experiments::bytes_words(view.seats.sizes.own),
                       experiments::bytes_words(view.seats.sizes.last),
                       experiments::bytes_words(view.times.how.polluter_bytes), view.seats.home,
                       counted(view.times.how.rounds, "round"), on.seconds);
}

std::vector<std::string> cache_sentences(const CacheView& view, const MeasuredOn& on) {
    std::vector<std::string> all;
    for (const auto& sentence : view.seats.refused)
        all.push_back(as_sentence(sentence));
    if (view.times.disturbed > 0)
        all.push_back(counted(view.times.disturbed, "quantum", "quanta") +
                      " had another program on the CPU.");
    for (const auto& remark : on.remarks)
        all.push_back(as_sentence(remark));
    return all;
}

std::string cache_text(const CacheView& view, const MeasuredOn& on, const Page& page) {
    auto text = bold(cache_title(on), page.color) + "\n" + wrapped(cache_method(view, on), "  ", page) + "\n";
    for (const double quantum : view.times.how.quanta_ms)
        text += quantum_table(view, quantum, page);
    text += loss_bars(view, page) + loss_table(view, page);
    for (const auto& sentence : cache_sentences(view, on))
        text += wrapped(sentence, "* ", page);
    text += wrapped("Verdict: " + std::string(name_of(view.reading.width)), "", page);
    return text + wrapped(view.reading.meaning, "", page);
}

json cache_json(const CacheView& view, const MeasuredOn& on) {
    json cells = json::array(), losses = json::array(), seats = json::object();
    for (const auto& cell : view.reading.cells)
        cells.push_back({{"bytes", cell.footprint},
                         {"quantum_ms", cell.quantum_ms},
                         {"place", key_of(cell.place)},
                         {"ms", ms_json(cell.seconds)},
                         {"longer_than_kept", change_json(cell.longer)}});
    for (const auto& loss : view.reading.losses)
        losses.push_back({{"quantum_ms", loss.quantum_ms},
                          {"place", key_of(loss.place)},
                          {"mean", change_json(loss.mean)},
                          {"most", loss.of > 0 ? json(loss.most) : json()},
                          {"at_bytes", loss.at},
                          {"shown", loss.costly},
                          {"of", loss.of}});
    for (const Place place : places_of(view))
        seats[key_of(place)] = *view.seats.of(place);
    return {{"model", on.model},
            {"cpus", on.cpus},
            {"places", std::move(seats)},
            {"l1d_bytes", view.seats.sizes.first},
            {"own_bytes", view.seats.sizes.own},
            {"llc_bytes", view.seats.sizes.last},
            {"polluter_bytes", view.times.how.polluter_bytes},
            {"rounds", view.times.how.rounds},
            {"cells", std::move(cells)},
            {"losses", std::move(losses)},
            {"verdict", name_of(view.reading.width)},
            {"refused", view.seats.refused},
            {"disturbed", view.times.disturbed},
            {"findings", view.reading.findings},
            {"meaning", view.reading.meaning},
            {"remarks", on.remarks},
            {"seconds", on.seconds}};
}

} // namespace affinityctl
