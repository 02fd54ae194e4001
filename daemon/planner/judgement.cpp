// SPDX-License-Identifier: Apache-2.0
#include "planner/judgement.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>

#include <fmt/format.h>

namespace affinityd::planner {

namespace {

using Count = double Effect::*;

constexpr double most_settling = 2;   ///< seconds of each round
constexpr double nearly = 0.9;        ///< of a round: looks are a second apart, or a little less
constexpr double least_traffic = 1e6; ///< bytes of a round; below, its cost per byte says nothing
constexpr double much_waiting = 0.01; ///< of the CPU time
constexpr double doubt_of_waiting = 0.1;
constexpr double least_rise = 2;     ///< of what counts as harm
constexpr double assumed_spread = 4; ///< of counts, as long as too few rounds were seen

double sum_of(Spans spans, Count count) {
    return std::accumulate(spans.begin(), spans.end(), 0.0,
                           [&](double sum, const Effect& span) { return sum + span.*count; });
}

/// `count` for each unit of `by`, times `scale`, of blocks in which both sides have at least `least` of `by`.
struct Sides {
    std::vector<double> before, after;
    Sides(Spans earlier, Spans later, Count count, Count by, double scale, double least = 1e-9) {
        for (std::size_t i = 0; i < std::min(earlier.size(), later.size()); ++i) {
            const auto &one = earlier[i], &other = later[i];
            if (std::min(one.*by, other.*by) < least) continue;
            before.push_back(one.*count / one.*by * scale);
            after.push_back(other.*count / other.*by * scale);
        }
    }
    [[nodiscard]] bool are_enough() const { return before.size() >= measure::least_samples; }
    [[nodiscard]] measure::Comparison compare(unsigned comparisons = 1) const {
        return measure::compare_times(before, after, comparisons);
    }
};

Sides costs_per_gigabyte(Spans before, Spans after) {
    return {before, after, &Effect::cpu_seconds, &Effect::bytes, 1e9, least_traffic};
}

Figure figure(std::string_view name, std::string_view unit, const Sides& sides) {
    const auto [verdict, change] = sides.compare();
    return {name, unit, measure::average_interval(sides.before), measure::average_interval(sides.after),
            verdict == measure::Verdict::not_enough ? std::nullopt : std::optional(change)};
}

/// How much more errors scatter from round to round than independent events do.
double spread_of(Spans rounds) {
    const double mean = sum_of(rounds, &Effect::errors) / static_cast<double>(rounds.size());
    if (rounds.size() < measure::least_samples) return assumed_spread;
    if (mean <= 0) return 1;
    double squares = 0;
    for (const auto& round : rounds)
        squares += (round.errors - mean) * (round.errors - mean);
    return std::max(1.0, squares / static_cast<double>(rounds.size() - 1) / mean);
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

} // namespace

Effect& Effect::operator+=(const Effect& other) {
    for (const Count count : {&Effect::seconds, &Effect::cpu_seconds, &Effect::bytes, &Effect::wait_seconds,
                              &Effect::migrations, &Effect::reads, &Effect::local_reads, &Effect::errors})
        this->*count += other.*count;
    return *this;
}

std::string_view to_string(Judgement::Verdict verdict) {
    constexpr std::array<std::string_view, 4> names{"not known", "better", "worse", "no difference shown"};
    return names[static_cast<std::size_t>(verdict)];
}

bool has_traffic(const Effect& round) { return round.bytes >= least_traffic && round.cpu_seconds > 0; }

measure::Comparison compare_costs(Spans before, Spans after, unsigned comparisons) {
    return costs_per_gigabyte(before, after).compare(comparisons);
}

bool waits_longer(Spans before, Spans after, unsigned comparisons) {
    const Sides waits(before, after, &Effect::wait_seconds, &Effect::seconds, 1);
    if (!waits.are_enough()) return false;
    std::vector<double> rises(waits.before.size());
    std::ranges::transform(waits.after, waits.before, rises.begin(), std::minus());
    const auto count = static_cast<double>(rises.size());
    const double mean = std::reduce(rises.begin(), rises.end()) / count;
    const double squares =
        std::inner_product(rises.begin(), rises.end(), rises.begin(), -count * mean * mean);
    const double errors =
        measure::student_quantile(doubt_of_waiting / comparisons, static_cast<unsigned>(rises.size() - 1));
    const double cpu = sum_of(before, &Effect::cpu_seconds) / sum_of(before, &Effect::seconds);
    return mean - errors * std::sqrt(std::max(squares, 0.0) / (count - 1) / count) > much_waiting * cpu;
}

std::string harm(Spans before, Spans after, double chance) {
    const double earlier = sum_of(before, &Effect::errors), earlier_span = sum_of(before, &Effect::seconds);
    const double later = sum_of(after, &Effect::errors), later_span = sum_of(after, &Effect::seconds);
    const double from = earlier / earlier_span * 60, to = later / later_span * 60;
    const double by_chance =
        measure::chance_of_more(earlier, earlier_span, later, later_span, spread_of(before));
    if (by_chance > chance || to < least_rise * from) return {};
    return fmt::format("errors in the journal rose from {:.3g} to {:.3g} a minute", from, to);
}

Judgement judge(Spans before, Spans after) {
    using Verdict = Judgement::Verdict;
    const auto per_byte = costs_per_gigabyte(before, after);
    const Sides per_second(before, after, &Effect::cpu_seconds, &Effect::seconds, 1);
    const auto rate = [&](Count count, double scale) {
        return Sides(before, after, count, &Effect::seconds, scale);
    };
    const auto with = [&](Verdict verdict, std::string_view why) {
        return Judgement{
            verdict,
            fmt::format("{}: {}", to_string(verdict), why),
            {figure("CPU time per GB", "s", per_byte), figure("CPU time per second", "s", per_second),
             figure("waiting for a CPU, per second", "ms", rate(&Effect::wait_seconds, 1e3)),
             figure("migrations per second", "", rate(&Effect::migrations, 1)),
             figure("local reads", "%", {before, after, &Effect::local_reads, &Effect::reads, 100}),
             figure("errors per minute", "", rate(&Effect::errors, 60))}};
    };
    if (auto found = harm(before, after); !found.empty()) return with(Verdict::worse, found);
    if (!per_second.are_enough())
        return with(Verdict::unknown,
                    fmt::format("{} rounds without the policy and {} with it, {} of each are needed",
                                before.size(), after.size(), measure::least_samples));
    const bool goes_by_bytes =
        std::ranges::any_of(before, has_traffic) || std::ranges::any_of(after, has_traffic);
    if (goes_by_bytes && !per_byte.are_enough()) return with(Verdict::unknown, "too little traffic");
    const auto comparison = (goes_by_bytes ? per_byte : per_second).compare();
    const std::string_view what = goes_by_bytes ? "CPU time per GB" : "CPU time per second";
    if (comparison.verdict == measure::Verdict::not_enough)
        return with(Verdict::unknown, "its programs took no CPU time");
    if (!goes_by_bytes && sum_of(before, &Effect::wait_seconds) > sum_of(before, &Effect::cpu_seconds))
        return with(Verdict::unknown, "its programs waited longer for a CPU than they ran: other programs "
                                      "decide how much they run");
    if (comparison.verdict == measure::Verdict::less && waits_longer(before, after))
        return with(Verdict::unknown, fmt::format("{}, but its programs waited longer for a CPU",
                                                  change_text(comparison.change, what)));
    // Where the work done is not known, more of it may have been done.
    if (!goes_by_bytes && comparison.verdict == measure::Verdict::more && waits_longer(after, before))
        return with(Verdict::unknown,
                    fmt::format("{}, but its programs waited shorter for a CPU: more may have been done",
                                change_text(comparison.change, what)));
    const auto verdict = comparison.verdict == measure::Verdict::less   ? Verdict::better
                         : comparison.verdict == measure::Verdict::more ? Verdict::worse
                                                                        : Verdict::no_difference;
    return with(verdict, change_text(comparison.change, what));
}

Alternation::Alternation(std::size_t sides, double round) : rounds_(sides), order_(sides), round_(round) {
    std::iota(order_.begin(), order_.end(), 0U);
}

bool Alternation::is_settling() const { return settled_ < std::min(most_settling, round_ / 5); }

bool Alternation::add(const Effect& growth) {
    if (is_settling())
        settled_ += growth.seconds;
    else
        growth_ += growth;
    return growth_.seconds >= nearly * round_;
}

void Alternation::count() {
    rounds_[present()].push_back(growth_);
    repeat();
    if (++place_ < order_.size()) return;
    place_ = 0;
    ++blocks_;
    std::ranges::reverse(order_);
}

void Alternation::repeat() {
    settled_ = 0;
    growth_ = {};
}

void Alternation::leave_out(std::size_t side) { std::erase(order_, side); }

double Alternation::left() const {
    return std::min(most_settling, round_ / 5) + round_ - settled_ - growth_.seconds;
}

} // namespace affinityd::planner
