// SPDX-License-Identifier: Apache-2.0
#include "planner/accept_shares.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace affinityd::planner {

namespace {

/// A year has half a million minutes, and each is a chance of its own.
constexpr double no_chance = 1e-6;
/// Looks may come in bursts: those that are closer together are kept as one.
constexpr AcceptShares::Time shortest_piece = std::chrono::seconds(1);

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

void AcceptShares::History::add(Time now, std::size_t accepted) {
    if (now - last() > longest_unread) {
        begun = now;
        return pieces.clear();
    }
    if (!pieces.empty() && now - pieces.back().from <= shortest_piece) {
        pieces.back().until = now;
        pieces.back().accepted += accepted;
    } else {
        pieces.push_back({last(), now, accepted});
    }
    while (now - pieces.front().until > window + longest_unread)
        pieces.pop_front();
}

double AcceptShares::History::between(Time from, Time until) const {
    const auto known = static_cast<double>((until - std::max(from, begun)).count());
    double sum = 0;
    for (const auto& piece : pieces) {
        const auto begin = std::max(from, piece.from), end = std::min(until, piece.until);
        if (begin >= end) continue;
        const auto part = static_cast<double>((end - begin).count()) /
                          static_cast<double>((piece.until - piece.from).count());
        sum += part * static_cast<double>(piece.accepted);
    }
    return sum * static_cast<double>((until - from).count()) / known;
}

void AcceptShares::see(Time now, const Counts& counts, const inventory::PortSample& sample) {
    if (now < now_ || now - now_ > longest_rest) {
        listeners_.clear();
        samples_.clear();
    }
    if (sample != inventory::PortSample{}) samples_.push_back({now, sample});
    while (!samples_.empty() && now - samples_.front().at > window + longest_unread)
        samples_.pop_front();
    before_ = std::exchange(now_, now);
    there_ = counts.size();
    for (auto& [listener, history] : listeners_)
        history.is_there = false;
    for (const auto& [listener, accepted] : counts)
        note(now, listener, accepted);
    // One that is not seen for a moment is not new when it is seen again.
    std::erase_if(listeners_, [&](const auto& one) {
        return !one.second.is_there && now - one.second.last() > longest_unread;
    });
}

void AcceptShares::note(Time now, std::uint64_t listener, std::optional<std::size_t> accepted) {
    const auto known = listeners_.find(listener);
    if (known != listeners_.end()) {
        known->second.is_there = true;
        if (accepted) known->second.add(now, *accepted);
    } else if (accepted) {
        listeners_.emplace(listener, History{now, true, {}});
    }
}

double AcceptShares::variance_since(Time from) const {
    inventory::PortSample sum;
    for (const auto& [at, sample] : samples_)
        if (at > from) sum += sample;
    return sum.variance();
}

std::optional<AcceptShares::Share> AcceptShares::unfair() const {
    // Epolls that watch very many files are read once a minute: all are compared up to the same moment.
    const auto is_fresh = [&](const History& one) { return one.is_there && now_ - one.last() <= window / 2; };
    Time until = now_;
    for (const auto& [listener, history] : listeners_)
        if (is_fresh(history)) until = std::min(until, history.last());
    // So much longer that each moment is part of a window in which all listeners are compared.
    const Time from = until - window - (now_ - before_);
    double all = 0, busiest = 0;
    Share share;
    for (const auto& [listener, history] : listeners_) {
        if (!is_fresh(history) || history.begun > until - window) continue;
        const double sum = history.between(from, until);
        all += sum;
        busiest = std::max(busiest, sum);
        ++share.workers;
    }
    if (share.workers < 2 || all <= 0 || 4 * share.workers < 3 * there_) return std::nullopt;
    const auto workers = static_cast<double>(share.workers);
    share.busiest = busiest / all;
    if (share.busiest <= std::min(2 / workers, (1 + 1 / workers) / 2)) return std::nullopt;
    // As if so many fewer had been counted, each by itself, that chance moves them as much.
    const double each = 1 + variance_since(from) / all;
    const auto whole = [&](double sum) { return static_cast<std::size_t>(std::llround(sum / each)); };
    const double chance = workers * binomial_tail(whole(all), whole(busiest), 1 / workers);
    return chance < no_chance ? std::optional(share) : std::nullopt;
}

} // namespace affinityd::planner
