// SPDX-License-Identifier: Apache-2.0
#include "planner/judgement.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

#include <fmt/format.h>

namespace affinityd::planner {

namespace {

using Spans = std::span<const Effect>;
using Count = double Effect::*;

constexpr double least_traffic = 1e6; ///< bytes of a span; below, its cost per byte says nothing
constexpr double much_waiting = 0.05; ///< seconds in each second, of all threads together
constexpr double least_rise = 2;      ///< of what counts as harm
constexpr double assumed_spread = 4;  ///< of counts, as long as too few spans were seen

/// `count` for each unit of `by`, times `scale`, of spans with at least `least` of `by`.
std::vector<double> rates(Spans spans, Count count, Count by, double scale, double least = 1e-9) {
    std::vector<double> found;
    for (const auto& span : spans)
        if (span.*by >= least) found.push_back(span.*count / span.*by * scale);
    return found;
}

double sum_of(Spans spans, Count count) {
    return std::accumulate(spans.begin(), spans.end(), 0.0,
                           [&](double sum, const Effect& span) { return sum + span.*count; });
}

double waits_of(Spans spans) {
    return sum_of(spans, &Effect::wait_seconds) / std::max(sum_of(spans, &Effect::seconds), 1e-9);
}

/// Both sides of one figure, each span on its own.
struct Sides {
    std::vector<double> before, after;
    Sides(Spans earlier, Spans later, Count count, Count by, double scale, double least = 1e-9)
        : before(rates(earlier, count, by, scale, least)), after(rates(later, count, by, scale, least)) {}
    [[nodiscard]] bool are_enough() const {
        return std::min(before.size(), after.size()) >= measure::least_samples;
    }
    [[nodiscard]] measure::Comparison compare() const { return measure::compare_times(before, after); }
};

void add(std::vector<Figure>& figures, std::string_view name, std::string_view unit, const Sides& sides,
         bool is_better_if_less = true) {
    auto& figure = figures.emplace_back(Figure{.name = name,
                                               .unit = unit,
                                               .before = measure::average_interval(sides.before),
                                               .after = measure::average_interval(sides.after),
                                               .change = {},
                                               .is_better_if_less = is_better_if_less});
    const auto comparison = sides.compare();
    if (comparison.verdict != measure::Verdict::not_enough) figure.change = comparison.change;
}

/// How much more counts scatter from span to span than independent events do.
double spread_of(Spans spans, Count count) {
    const double mean = sum_of(spans, count) / static_cast<double>(spans.size());
    if (spans.size() < measure::least_samples) return assumed_spread;
    if (mean <= 0) return 1;
    double squares = 0;
    for (const auto& span : spans)
        squares += (span.*count - mean) * (span.*count - mean);
    return std::max(1.0, squares / static_cast<double>(spans.size() - 1) / mean);
}

/// `by`: what the events grow with, if nothing else changes.
std::string rise(Spans before, Spans after, double chance, Count count, Count by, std::string_view what,
                 std::string_view unit, double scale) {
    const double earlier = sum_of(before, count), later = sum_of(after, count);
    const double earlier_span = sum_of(before, by), later_span = sum_of(after, by);
    const double spread = spread_of(before, count);
    if (measure::chance_of_more(earlier, earlier_span, later, later_span, spread) > chance ||
        later / later_span < least_rise * earlier / earlier_span)
        return {};
    return fmt::format("{} rose from {:.3g} to {:.3g} {}", what, earlier / earlier_span * scale,
                       later / later_span * scale, unit);
}

/// As "12.1 % less (between 8.0 and 16.0 %)".
std::string change_text(const measure::Interval& change, std::string_view what) {
    if (!change.excludes_zero())
        return fmt::format("{}: {} %, between {} and {} %", what, measure::signed_percent(change.estimate, 1),
                           measure::signed_percent(change.low, 1), measure::signed_percent(change.high, 1));
    const bool is_less = change.high < 0;
    const auto [least, most] = std::minmax({std::abs(change.low), std::abs(change.high)});
    return fmt::format("{} % {} {} (between {} and {} %)", measure::percent(std::abs(change.estimate), 1),
                       is_less ? "less" : "more", what, measure::percent(least, 1),
                       measure::percent(most, 1));
}

Judgement with(Judgement judgement, Judgement::Verdict verdict, std::string sentence) {
    judgement.verdict = verdict;
    judgement.sentence = fmt::format("{}: {}", to_string(verdict), sentence);
    return judgement;
}

} // namespace

Effect& Effect::operator+=(const Effect& other) {
    for (const Count count :
         {&Effect::seconds, &Effect::cpu_seconds, &Effect::bytes, &Effect::wait_seconds, &Effect::migrations,
          &Effect::reads, &Effect::local_reads, &Effect::retransmits, &Effect::errors})
        this->*count += other.*count;
    return *this;
}

std::string_view to_string(Judgement::Verdict verdict) {
    constexpr std::array<std::string_view, 4> names{"not known", "better", "worse", "no difference shown"};
    return names[static_cast<std::size_t>(verdict)];
}

std::vector<double> costs_per_gigabyte(Spans spans) {
    return rates(spans, &Effect::cpu_seconds, &Effect::bytes, 1e9, least_traffic);
}

std::string harm(Spans before, Spans after, double chance) {
    auto errors = rise(before, after, chance, &Effect::errors, &Effect::seconds, "errors in the journal",
                       "a minute", 60);
    if (!errors.empty()) return errors;
    const bool has_traffic = sum_of(before, &Effect::bytes) >= least_traffic;
    return has_traffic ? rise(before, after, chance, &Effect::retransmits, &Effect::bytes,
                              "retransmits of TCP", "per GB", 1e9)
                       : rise(before, after, chance, &Effect::retransmits, &Effect::seconds,
                              "retransmits of TCP", "a minute", 60);
}

Judgement judge(Spans before, Spans after) {
    using Verdict = Judgement::Verdict;
    Judgement judgement;
    const Sides per_byte(before, after, &Effect::cpu_seconds, &Effect::bytes, 1e9, least_traffic);
    const Sides per_second(before, after, &Effect::cpu_seconds, &Effect::seconds, 1);
    auto& figures = judgement.figures;
    add(figures, "CPU time per GB", "s", per_byte);
    add(figures, "CPU time per second", "s", per_second);
    add(figures, "waiting for a CPU, per second", "ms",
        {before, after, &Effect::wait_seconds, &Effect::seconds, 1e3});
    add(figures, "migrations per second", "", {before, after, &Effect::migrations, &Effect::seconds, 1});
    add(figures, "local reads", "%", {before, after, &Effect::local_reads, &Effect::reads, 100}, false);
    add(figures, "retransmits per minute", "", {before, after, &Effect::retransmits, &Effect::seconds, 60});
    add(figures, "errors per minute", "", {before, after, &Effect::errors, &Effect::seconds, 60});
    if (auto found = harm(before, after); !found.empty())
        return with(std::move(judgement), Verdict::worse, std::move(found));
    if (!per_second.are_enough())
        return with(std::move(judgement), Verdict::unknown,
                    fmt::format("{} samples before and {} after, each side needs {}", before.size(),
                                after.size(), measure::least_samples));
    const bool has_traffic = !per_byte.before.empty() || !per_byte.after.empty();
    if (has_traffic && !per_byte.are_enough())
        return with(std::move(judgement), Verdict::unknown, "too little traffic");
    const auto comparison = (has_traffic ? per_byte : per_second).compare();
    const std::string_view what = has_traffic ? "CPU time per GB" : "CPU time per second";
    if (comparison.verdict == measure::Verdict::not_enough)
        return with(std::move(judgement), Verdict::unknown, "its programs took no CPU time");
    // Where the work done is not known, CPU time that moves against the waiting for it tells nothing.
    const double waiting = waits_of(after) - waits_of(before);
    const bool is_less = comparison.change.estimate < 0;
    if (!has_traffic && comparison.change.excludes_zero() && std::abs(waiting) > much_waiting &&
        (waiting > 0) == is_less)
        return with(
            std::move(judgement), Verdict::unknown,
            fmt::format("its programs had {0} CPU time and waited {1} for a CPU: {0} may have been done",
                        is_less ? "less" : "more", is_less ? "longer" : "shorter"));
    const auto verdict = comparison.verdict == measure::Verdict::less   ? Verdict::better
                         : comparison.verdict == measure::Verdict::more ? Verdict::worse
                                                                        : Verdict::no_difference;
    return with(std::move(judgement), verdict, change_text(comparison.change, what));
}

} // namespace affinityd::planner
