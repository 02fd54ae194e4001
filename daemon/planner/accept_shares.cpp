// SPDX-License-Identifier: Apache-2.0
#include "planner/accept_shares.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace affinityd::planner {

namespace {

constexpr std::size_t fewest_looks = 5; ///< in a window
constexpr double no_chance = 0.001;

} // namespace

double binomial_tail(std::size_t all, std::size_t least, double share) {
    const auto n = static_cast<double>(all);
    double sum = 0;
    for (auto i = static_cast<double>(least); i <= n; ++i) {
        const double choices = std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1);
        const double term = std::exp(choices + i * std::log(share) + (n - i) * std::log1p(-share));
        sum += term;
        if (i > n * share && term <= sum * 1e-6) break; // they only get smaller
    }
    return std::min(sum, 1.0);
}

void AcceptShares::see(Time now, Counts counts) {
    // One that is older stays, so that it is known that a whole window was seen.
    while (looks_.size() > 1 && now - looks_[1].at >= window)
        looks_.pop_front();
    looks_.push_back({now, std::move(counts)});
}

std::optional<AcceptShares::Share> AcceptShares::unfair(Time now) const {
    if (looks_.size() < fewest_looks || now - looks_.front().at < window) return std::nullopt;
    const auto& first = looks_.front().counts;
    const auto& last = looks_.back().counts;
    Counts sums;
    std::size_t all = 0;
    for (const auto& look : looks_)
        for (const auto& [listener, count] : look.counts) {
            if (!first.contains(listener) || !last.contains(listener)) continue; // it is new, or has ended
            sums[listener] += count;
            all += count;
        }
    if (sums.size() < 2 || all == 0 || 4 * sums.size() < 3 * last.size()) return std::nullopt;
    const auto busiest =
        std::ranges::max_element(sums, {}, [](const auto& one) { return one.second; })->second;
    const auto workers = static_cast<double>(sums.size());
    const Share share{static_cast<double>(busiest) / static_cast<double>(all), sums.size()};
    if (share.busiest <= std::min(2 / workers, (1 + 1 / workers) / 2)) return std::nullopt;
    // A connection is there in many looks, and counts as one.
    const auto open = [&](std::size_t sum) {
        return static_cast<std::size_t>(
            std::llround(static_cast<double>(sum) / static_cast<double>(looks_.size())));
    };
    if (open(busiest) == 0) return std::nullopt;
    const double chance = workers * binomial_tail(open(all), open(busiest), 1 / workers);
    return chance < no_chance ? std::optional(share) : std::nullopt;
}

} // namespace affinityd::planner
