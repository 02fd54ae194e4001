// SPDX-License-Identifier: Apache-2.0
#include "experiments/sharing/reading.hpp"

#include "experiments/frame/timings.hpp"
#include "measure/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace affinityd::experiments {

namespace {

using measure::Verdict;

/// "takes 67 % less time than" or so.
std::string longer_words(const measure::Comparison& longer) {
    const auto percent = std::lround(std::abs(longer.change.estimate) * 100);
    if (longer.verdict == Verdict::more) return fmt::format("{} % more time than", percent);
    if (longer.verdict == Verdict::less) return fmt::format("{} % less time than", percent);
    if (longer.verdict == Verdict::none_shown) return "no difference shown from";
    return "too few runs to be compared with";
}

const PlacingFigures* figures_of(const SharingReading& reading, Placing placing) {
    const auto found = std::ranges::find(reading.placings, placing, &PlacingFigures::placing);
    return found == reading.placings.end() ? nullptr : &*found;
}

bool is_shorter(const PlacingFigures* figures) {
    return figures != nullptr && figures->longer.verdict == Verdict::less;
}

const PlacingTimes* times_of(const SharingTimes& times, Placing placing) {
    const auto found = std::ranges::find(times.placings, placing,
                                         [](const PlacingTimes& one) { return one.placed.placing; });
    return found == times.placings.end() ? nullptr : &*found;
}

bool can_tell_of_false_sharing(const SharingTimes& times) {
    return times_of(times, Placing::pairs) != nullptr && times_of(times, Placing::one_line) != nullptr;
}

/// False sharing against the pinned pairs: the same CPUs, another layout in memory.
std::string false_sharing_words(const SharingTimes& times, unsigned comparisons) {
    const auto longer = how_much_longer(times_of(times, Placing::pairs)->seconds,
                                        times_of(times, Placing::one_line)->seconds, comparisons);
    return fmt::format("false sharing, two variables in one line, each written by one CPU only: {} pinned "
                       "pairs on the same CPUs",
                       longer_words(longer));
}

/// The thread rules that place threads as they were: `bind: cpu`, as a wider mask lets the scheduler part or
/// mix what was measured. With a CPU for each thread, `spread: cpu` deals them out.
std::string rules_for(const PlacedThreads& placed) {
    std::string rules;
    for (const auto& [name, variable] : {std::pair{"left-*", 0U}, std::pair{"right-*", 1U}}) {
        const auto cpus = placed.cpus_of(variable);
        rules += fmt::format("{}{{name: \"{}\", cpus: \"{}\", {}bind: cpu}}", rules.empty() ? "" : ", ", name,
                             cpus.to_list(), cpus.count() > 1 ? "spread: cpu, " : "");
    }
    return "threads: [" + rules + "]";
}

std::string_view words_for(const std::optional<Near>& near) {
    if (near == Near::core) return "on the hardware threads of one core";
    if (near == Near::llc) return "within one last-level cache";
    return "as near as can be";
}

/// What deals tasks out so that they are that far from each other.
std::string_view spread_of(const std::optional<Near>& near) {
    constexpr std::array levels{"cpu", "core", "llc", "node", "socket"};
    return levels[static_cast<std::size_t>(near.value_or(Near::llc))];
}

std::string words_for_pairs(const SharingTimes& times) {
    return "Threads that write the same data belong on one CPU: give those that share a name one thread rule "
           "each, as in " +
           rules_for(times_of(times, Placing::pairs)->placed) + ".";
}

std::string words_for_neighbours(const SharingTimes& times) {
    const auto& placed = times_of(times, Placing::neighbours)->placed;
    return fmt::format("a CPU of its own for each, those that share {}, as in {}", words_for(placed.near),
                       rules_for(placed)) +
           (placed.near == Near::llc ? "; for all threads of a process at once that is together: llc with "
                                       "spread: cpu and bind: cpu."
                                     : ".");
}

std::string meaning_of_sharing(const SharingReading& reading, const SharingTimes& times) {
    const auto* pairs = figures_of(reading, Placing::pairs);
    const auto* neighbours = figures_of(reading, Placing::neighbours);
    if (pairs == nullptr || pairs->longer.verdict == Verdict::not_enough)
        return "Too few runs for a verdict: at least four rounds are needed.";
    const bool near_wins =
        is_shorter(neighbours) &&
        (!is_shorter(pairs) || neighbours->longer.change.estimate < pairs->longer.change.estimate);
    std::string text;
    if (near_wins)
        text = "Threads that write the same data gain most from " + words_for_neighbours(times);
    else if (is_shorter(pairs))
        text = words_for_pairs(times);
    else
        text = "No placing was shown to be better than what the scheduler does with such threads here: leave "
               "them bind: llc (the default), and see to it that others do not take their CPUs.";
    if (is_shorter(pairs) && is_shorter(neighbours) && !near_wins)
        text += " Where they have more to do than one CPU can: " + words_for_neighbours(times);
    if (const auto* apart = figures_of(reading, Placing::apart);
        apart != nullptr && apart->longer.verdict == Verdict::more)
        text +=
            fmt::format(" Pinned without looking they are worse off than with no policy at all: do not write "
                        "spread: {} for threads that share data.",
                        spread_of(times_of(times, Placing::apart)->placed.near));
    return text + " No policy helps against false sharing; the program has to give each variable a line of "
                  "its own. Which threads of a program share is what affinityctl sharers PID finds out.";
}

} // namespace

SharingReading read_sharing(const SharingTimes& times) {
    SharingReading reading;
    if (times.placings.empty()) return reading;
    const auto& base = times.placings.front().seconds;
    const bool tells_more = can_tell_of_false_sharing(times);
    const auto comparisons =
        static_cast<unsigned>(std::max<std::size_t>(1, times.placings.size() - 1 + (tells_more ? 1 : 0)));
    for (const auto& one : times.placings) {
        PlacingFigures figures{.placing = one.placed.placing,
                               .seconds = mean_time(one.seconds),
                               .median = measure::median(one.seconds).value_or(0)};
        if (one.reads) figures.miss_rate = one.reads->miss_rate();
        if (one.placed.placing != Placing::scheduler)
            figures.longer = how_much_longer(base, one.seconds, comparisons);
        reading.placings.push_back(std::move(figures));
    }
    for (const auto& one : reading.placings)
        if (one.placing != Placing::scheduler && one.placing != Placing::one_line)
            reading.findings.push_back(fmt::format("{}: {} what the scheduler does", name_of(one.placing),
                                                   longer_words(one.longer)));
    if (tells_more) reading.findings.push_back(false_sharing_words(times, comparisons));
    reading.meaning = meaning_of_sharing(reading, times);
    return reading;
}

std::string summary_of(const SharingReading& reading) {
    std::string text;
    for (const auto& one : reading.placings)
        text += fmt::format("{}{} {:.2f} ms", text.empty() ? "" : ", ", name_of(one.placing),
                            (one.seconds ? one.seconds->estimate : one.median) * 1e3);
    return text;
}

} // namespace affinityd::experiments
