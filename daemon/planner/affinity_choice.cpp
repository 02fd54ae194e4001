// SPDX-License-Identifier: Apache-2.0
#include "planner/affinity_choice.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace affinityd::planner {

namespace {

constexpr double gain_to_adopt = 0.03;
constexpr std::size_t first_look = 6, looks = 6; ///< blocks before the first; each doubles them
constexpr std::size_t most_blocks = first_look << (looks - 1);
constexpr unsigned most_idle = 10; ///< rounds without traffic, then the trial is broken off
constexpr double doubt = 0.05;
constexpr std::int64_t hour = 3600;
constexpr unsigned most_doublings = 7;

} // namespace

std::string_view to_string(const AutoCandidate& candidate) {
    if (candidate.model != policy::Model::full) return affinityd::to_string(candidate.model);
    return candidate.steer == policy::Steer::none ? "full" : "full with steer";
}

std::optional<AutoCandidate> candidate_of(std::string_view text) {
    for (const auto& candidate : {AutoCandidate{}, AutoCandidate{policy::Model::process, policy::Steer::none},
                                  AutoCandidate{policy::Model::full, policy::Steer::none},
                                  AutoCandidate{policy::Model::full, policy::Steer::automatic}})
        if (to_string(candidate) == text) return candidate;
    return std::nullopt;
}

AffinityTrial::AffinityTrial(std::vector<AutoCandidate> candidates, const AutoCandidate& before, double round)
    : candidates_(std::move(candidates)), turns_(candidates_.size(), round), before_(before),
      next_look_(first_look) {}

void AffinityTrial::add(const Effect& growth) {
    if (end_ || !turns_.add(growth)) return;
    if (!has_traffic(turns_.growth())) {
        turns_.repeat();
        if (++idle_ >= most_idle) end_ = {false, before_, "broken off: the traffic ended"};
        return;
    }
    idle_ = 0;
    ++rounds_;
    all_ += turns_.growth();
    const auto side = turns_.present();
    turns_.count();
    // Each round of each candidate is looked at twice: alone, and with those before it.
    const double chance = doubt / static_cast<double>(2 * most_blocks * turns_.sides());
    const Spans none = turns_.rounds(0), all = turns_.rounds(side);
    for (const auto rounds : {all.last(1), all})
        if (const auto found = side == 0 ? std::string() : harm(none, rounds, chance); !found.empty()) {
            end_ = {true, {}, fmt::format("under {} {}", to_string(candidates_[side]), found)};
            return;
        }
    if (turns_.blocks() == next_look_) look();
}

/// How much more the one costs than the other, relative; as wide as all such comparisons of a trial need.
measure::Interval AffinityTrial::change(std::size_t from, std::size_t to) const {
    const auto comparisons = static_cast<unsigned>(2 * looks * (turns_.sides() - 1));
    const auto comparison = compare_costs(turns_.rounds(from), turns_.rounds(to), comparisons);
    return comparison.verdict == measure::Verdict::not_enough ? measure::Interval{0, -1, 1}
                                                              : comparison.change;
}

bool AffinityTrial::is_cheaper(std::size_t side) const { return change(0, side).high < -gain_to_adopt; }

/// The cheapest of those that are shown to be cheaper than `none`, or the choice from before if it may be
/// cheaper than that, and none is shown to be cheaper than it.
AutoCandidate AffinityTrial::best() const {
    std::size_t best = 0;
    for (std::size_t side = 1; side < turns_.sides(); ++side)
        if (candidates_[side] == before_ && !turns_.is_out(side)) best = side;
    const auto kept = best;
    for (std::size_t side = 1; side < turns_.sides(); ++side) {
        if (side == kept || turns_.is_out(side) || !is_cheaper(side)) continue;
        const auto gain = change(best, side);
        if (best == 0 || (best == kept ? gain.high < -gain_to_adopt : gain.estimate < 0)) best = side;
    }
    return candidates_[best];
}

void AffinityTrial::look() {
    bool is_shown = false, is_hopeless = true;
    for (std::size_t side = 1; side < turns_.sides(); ++side) {
        if (turns_.is_out(side)) continue;
        if (change(0, side).low > -gain_to_adopt ||
            waits_longer(turns_.rounds(0), turns_.rounds(side), static_cast<unsigned>(looks))) {
            turns_.leave_out(side);
            continue;
        }
        is_shown |= is_cheaper(side);
        is_hopeless = false;
    }
    if (!is_shown) decide_at_ = 0;
    if (is_shown && decide_at_ == 0) decide_at_ = 2 * turns_.blocks();
    const bool is_last = turns_.blocks() == most_blocks || (is_shown && turns_.blocks() >= decide_at_);
    next_look_ = 2 * turns_.blocks();
    if (is_last || is_hopeless) end_ = {true, best(), figures()};
}

/// As "process -1.2 % (-3.0 to +0.7 %), full -12.1 % (-16.0 to -8.0 %)".
std::string AffinityTrial::figures() const {
    std::string text;
    for (std::size_t side = 1; side < turns_.sides(); ++side) {
        const auto gain = change(0, side);
        text += fmt::format("{}{} {} % ({} to {} %)", text.empty() ? "" : ", ", to_string(candidates_[side]),
                            measure::signed_percent(gain.estimate, 1), measure::signed_percent(gain.low, 1),
                            measure::signed_percent(gain.high, 1));
    }
    return fmt::format("CPU time per GB against none, after {}: {}", counted(rounds_, "round"), text);
}

bool is_due(const AutoChoice& choice, const ChoiceBasis& now, std::int64_t time) {
    const auto age = time - choice.time;
    if (age < hour) return false;
    if (choice.basis.text_hash != now.text_hash || choice.basis.machine != now.machine) return true;
    const double before = choice.basis.bytes_per_second;
    const bool is_other = now.bytes_per_second > 2 * before || now.bytes_per_second < before / 2;
    return is_other && age >= hour << std::min(choice.confirmed, most_doublings);
}

} // namespace affinityd::planner
