// SPDX-License-Identifier: Apache-2.0
#include "experiments/cache/reading.hpp"

#include "experiments/frame/timings.hpp"

#include <algorithm>
#include <initializer_list>
#include <numeric>

#include <fmt/format.h>

namespace affinityd::experiments {

namespace {

const std::vector<double>* kept_seconds(const CacheTimes& times, const CacheCell& cell) {
    const auto found = std::ranges::find_if(times.cells, [&](const CacheCell& other) {
        return other.footprint == cell.footprint && other.quantum_ms == cell.quantum_ms &&
               other.place == Place::kept;
    });
    return found == times.cells.end() ? nullptr : &found->seconds;
}

/// Cells and averages both decide the verdict, and there are many more cells: each kind may be wrong half as
/// often as all together.
constexpr unsigned kinds = 2;

std::vector<CellFigures> figures_of_cells(const CacheTimes& times) {
    const auto compared =
        std::ranges::count_if(times.cells, [](const CacheCell& cell) { return cell.place != Place::kept; });
    std::vector<CellFigures> all;
    for (const auto& cell : times.cells) {
        CellFigures figures{.footprint = cell.footprint,
                            .quantum_ms = cell.quantum_ms,
                            .place = cell.place,
                            .seconds = mean_time(cell.seconds)};
        const auto* kept = kept_seconds(times, cell);
        if (cell.place != Place::kept && kept != nullptr)
            figures.longer = how_much_longer(*kept, cell.seconds, kinds * static_cast<unsigned>(compared));
        all.push_back(figures);
    }
    return all;
}

/// Only what fits into it can be lost with a cache.
std::uint64_t lost_bytes(const CacheSizes& sizes, Place place) {
    return place == Place::displaced || place == Place::group ? sizes.own : sizes.last;
}

/// By round, the mean over working sets of `most` bytes at most of what a quantum took; each counts as much
/// as any other.
std::vector<double> mean_by_round(const CacheTimes& times, Place place, double quantum_ms,
                                  std::uint64_t most) {
    std::vector<double> sums;
    for (const auto& cell : times.cells) {
        if (cell.place != place || cell.quantum_ms != quantum_ms || cell.footprint > most) continue;
        const auto* kept = kept_seconds(times, cell);
        if (kept == nullptr || kept->empty()) return {};
        const double unit =
            std::accumulate(kept->begin(), kept->end(), 0.0) / static_cast<double>(kept->size());
        sums.resize(cell.seconds.size());
        for (std::size_t i = 0; i < sums.size(); ++i)
            sums[i] += cell.seconds[i] / unit;
    }
    return sums;
}

PlaceLoss loss_of(const CacheTimes& times, const std::vector<CellFigures>& cells, Place place,
                  double quantum_ms, std::uint64_t most_bytes, unsigned comparisons) {
    PlaceLoss loss{.place = place, .quantum_ms = quantum_ms, .most = -1};
    for (const auto& cell : cells) {
        if (cell.place != place || cell.quantum_ms != quantum_ms || cell.footprint > most_bytes ||
            cell.longer.verdict == measure::Verdict::not_enough)
            continue;
        ++loss.of;
        if (cell.is_costly()) ++loss.costly;
        if (cell.longer.change.estimate > loss.most) {
            loss.most = cell.longer.change.estimate;
            loss.at = cell.footprint;
        }
    }
    loss.mean = how_much_longer(mean_by_round(times, Place::kept, quantum_ms, most_bytes),
                                mean_by_round(times, place, quantum_ms, most_bytes), comparisons);
    return loss;
}

bool costs(const CacheReading& reading, Place place) {
    return std::ranges::any_of(reading.losses,
                               [&](const PlaceLoss& loss) { return loss.place == place && loss.is_shown(); });
}

bool was_measured(const CacheReading& reading, Place place) {
    return std::ranges::any_of(reading.losses,
                               [&](const PlaceLoss& loss) { return loss.place == place && loss.of > 0; });
}

Width width_of(const CacheReading& reading) {
    if (costs(reading, Place::group)) return Width::core;
    if (costs(reading, Place::other_llc)) return Width::llc;
    return costs(reading, Place::other_node) ? Width::node : Width::not_known;
}

std::string loss_words(const PlaceLoss& loss) {
    auto text = fmt::format("every {:g} ms, {}: ", loss.quantum_ms, name_of(loss.place));
    if (!loss.is_shown()) return text + "no loss shown";
    return text +
           fmt::format(
               "{:.1f} % longer on average, {:.1f} % at most (with {}); shown for {} of {} working sets",
               100 * loss.mean.change.estimate, 100 * loss.most, bytes_words(loss.at), loss.costly, loss.of);
}

/// "interrupted every 2 ms or every 10 ms": where any of the moves of this place costs.
std::string quanta_words(const CacheReading& reading, Place place) {
    std::string text;
    for (const auto& loss : reading.losses)
        if (loss.place == place && loss.is_shown())
            text += fmt::format("{}every {:g} ms", text.empty() ? "" : ", ", loss.quantum_ms);
    return text;
}

/// " Moves to another node were not measured."; "": all of these moves were.
std::string unmeasured_words(const CacheReading& reading, std::initializer_list<Place> moves) {
    std::string text;
    for (const Place place : moves)
        if (!was_measured(reading, place))
            text += (text.empty() ? " Moves " : " and ") +
                    std::string(place == Place::group       ? "to another core of the same last-level cache"
                                : place == Place::other_llc ? "to another last-level cache of the node"
                                                            : "to another node");
    return text.empty() ? text : text + " were not measured.";
}

std::string words_for_llc(const CacheReading& reading) {
    return "bind: llc, the default, is what this machine rewards: a move to another last-level cache costs "
           "something (" +
           quanta_words(reading, Place::other_llc) + ")" +
           (was_measured(reading, Place::group)
                ? ", and one within a last-level cache nothing that could be shown. bind: core would only "
                  "take room from the scheduler."
                : "." + unmeasured_words(reading, {Place::group}));
}

std::string words_for_node(const CacheReading& reading) {
    const auto unmeasured = unmeasured_words(reading, {Place::group, Place::other_llc});
    return std::string("bind: node is narrow enough here") +
           (unmeasured.empty() ? ": only a move" : ", as far as this shows: a move") +
           " to another node was shown to cost something (" + quanta_words(reading, Place::other_node) +
           ")." + unmeasured + " bind: llc, the default, does no harm.";
}

std::string meaning_of_width(const CacheReading& reading) {
    switch (reading.width) {
    case Width::core:
        return "bind: core for tasks that are interrupted often (" + quanta_words(reading, Place::group) +
               "): going on at another core costs them their L1 and L2 even within one last-level cache. It "
               "is an upper bound, as the working set is walked without any order; for tasks that run for "
               "long at a time bind: llc, the default, gives the scheduler more room.";
    case Width::llc:
        return words_for_llc(reading);
    case Width::node:
        return words_for_node(reading);
    case Width::not_known:
        break;
    }
    const bool is_measured = std::ranges::any_of(
        places, [&](Place place) { return is_move(place) && was_measured(reading, place); });
    if (!is_measured) return "No verdict: it takes at least four rounds, and another core to go to.";
    return "No verdict: no move was shown to cost more than 1 %. Keep bind: llc, the default." +
           unmeasured_words(reading, {Place::group, Place::other_llc, Place::other_node});
}

} // namespace

bool CellFigures::is_costly() const {
    return longer.verdict == measure::Verdict::more && longer.change.low > little_loss;
}

bool PlaceLoss::is_shown() const {
    return costly >= 2 || (mean.verdict == measure::Verdict::more && mean.change.low > little_loss);
}

std::string_view name_of(Width width) {
    constexpr std::array names{"bind: core", "bind: llc", "bind: node", "not known"};
    return names[static_cast<std::size_t>(width)];
}

CacheReading read_cache(const CacheTimes& times, const CacheSeats& seats, bool is_quiet) {
    CacheReading reading{.cells = figures_of_cells(times)};
    std::vector<Place> compared;
    for (const Place place : places)
        if (place != Place::kept && seats.of(place)) compared.push_back(place);
    const auto comparisons = kinds * static_cast<unsigned>(compared.size() * times.how.quanta_ms.size());
    for (const double quantum : times.how.quanta_ms)
        for (const Place place : compared)
            reading.losses.push_back(
                loss_of(times, reading.cells, place, quantum, lost_bytes(seats.sizes, place), comparisons));
    if (is_quiet) reading.width = width_of(reading);
    for (const auto& loss : reading.losses)
        if (loss.of > 0) reading.findings.push_back(loss_words(loss));
    reading.meaning = is_quiet ? meaning_of_width(reading)
                               : "No verdict: the machine is busy or emulated, as a remark says. Measure "
                                 "again on a quiet one.";
    return reading;
}

std::string summary_of(const CacheReading& reading) {
    std::string text(name_of(reading.width));
    for (const auto& loss : reading.losses)
        if (is_move(loss.place) && loss.of > 0)
            text += fmt::format("; {:g} ms, {}: {:.1f} % (at most {:.1f} %)", loss.quantum_ms,
                                name_of(loss.place), 100 * loss.mean.change.estimate, 100 * loss.most);
    return text;
}

} // namespace affinityd::experiments
