// SPDX-License-Identifier: Apache-2.0
#include "planner/affinity_choice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace affinityd::planner {

namespace {

constexpr double gain_to_adopt = 0.03;
constexpr double most_skipped = 2;               ///< of each round: tasks and connections move
constexpr std::size_t first_look = 6, looks = 6; ///< blocks before the first; each doubles them
constexpr std::size_t most_blocks = first_look << (looks - 1);
constexpr unsigned most_idle = 10;           ///< rounds without traffic, then the trial is broken off
constexpr double least_bytes_of_round = 4e6; ///< before a trial begins
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

AffinityTrial::AffinityTrial(const std::vector<AutoCandidate>& candidates, const AutoCandidate& before,
                             double round)
    : before_(before), round_(round), next_look_(first_look) {
    for (const auto& candidate : candidates)
        sides_.push_back({candidate, {}});
    begin_block();
}

const AutoCandidate& AffinityTrial::present() const {
    return end_ ? end_->choice : sides_[order_[place_]].candidate;
}

double AffinityTrial::bytes_per_second() const {
    Effect all;
    for (const auto& side : sides_)
        for (const auto& round : side.rounds)
            all += round;
    return all.seconds > 0 ? all.bytes / all.seconds : 0;
}

void AffinityTrial::add(const Effect& growth) {
    if (end_) return;
    if (skipped_ < std::min(most_skipped, round_ / 5))
        skipped_ += growth.seconds;
    else
        growth_ += growth;
    if (growth_.seconds >= round_) end_round();
}

void AffinityTrial::end_round() {
    skipped_ = 0;
    const std::array growth{std::exchange(growth_, {})};
    if (costs_per_gigabyte(growth).empty()) { // the same again
        if (++idle_ >= most_idle) finish(false, before_, "broken off: the traffic ended");
        return;
    }
    idle_ = 0;
    auto& side = sides_[order_[place_]];
    side.rounds.push_back(growth.front());
    ++rounds_;
    if (&side != &sides_.front()) {
        // Each round of each candidate is looked at twice: alone, and with those before it.
        const double chance = doubt / static_cast<double>(2 * most_blocks * sides_.size());
        auto found = harm(sides_.front().rounds, growth, chance);
        if (found.empty()) found = harm(sides_.front().rounds, side.rounds, chance);
        if (!found.empty())
            return finish(true, {}, fmt::format("under {} {}", to_string(side.candidate), found));
    }
    if (++place_ < order_.size()) return;
    if (++blocks_ == next_look_) look();
    begin_block();
}

void AffinityTrial::begin_block() {
    order_.clear();
    for (std::size_t i = 0; i < sides_.size(); ++i)
        if (!sides_[i].is_out) order_.push_back(i);
    if (blocks_ % 2 == 1) std::ranges::reverse(order_);
    place_ = 0;
}

/// How much more the one costs than the other, relative; as wide as all such comparisons of a trial need.
measure::Interval AffinityTrial::change(const Side& from, const Side& to) const {
    const auto comparisons = static_cast<unsigned>(2 * looks * (sides_.size() - 1));
    const auto base = costs_per_gigabyte(from.rounds), changed = costs_per_gigabyte(to.rounds);
    const auto comparison = measure::compare_times(base, changed, comparisons);
    return comparison.verdict == measure::Verdict::not_enough ? measure::Interval{0, -1, 1}
                                                              : comparison.change;
}

/// The cheapest of those that are shown to be cheaper than `none`, or the choice from before if it may be
/// cheaper than that, and none is shown to be cheaper than it; null: none.
const AffinityTrial::Side* AffinityTrial::best() const {
    const auto kept = std::ranges::find_if(sides_, [&](const Side& side) {
        return &side != &sides_.front() && side.candidate == before_ && !side.is_out;
    });
    const Side* found = kept == sides_.end() ? nullptr : &*kept;
    for (const auto& side : sides_) {
        if (side.is_out || &side == &sides_.front() || side.candidate == before_) continue;
        if (change(sides_.front(), side).high >= -gain_to_adopt) continue;
        const bool is_kept = found != nullptr && found->candidate == before_;
        if (found == nullptr ||
            (is_kept ? change(*found, side).high < -gain_to_adopt : change(*found, side).estimate < 0))
            found = &side;
    }
    return found;
}

void AffinityTrial::look() {
    auto& none = sides_.front();
    bool is_shown = false;
    for (auto& side : sides_) {
        if (&side == &none || side.is_out) continue;
        const auto gain = change(none, side);
        is_shown |= gain.high < -gain_to_adopt;
        side.is_out = gain.low > -gain_to_adopt;
    }
    if (!is_shown) decide_at_ = 0;
    if (is_shown && decide_at_ == 0) decide_at_ = 2 * blocks_;
    const bool is_last = blocks_ == most_blocks || (is_shown && blocks_ >= decide_at_);
    const bool is_hopeless =
        std::ranges::all_of(sides_, [&](const Side& side) { return &side == &none || side.is_out; });
    next_look_ = 2 * blocks_;
    if (!is_last && !is_hopeless) return;
    const auto* chosen = best();
    finish(true, chosen == nullptr ? AutoCandidate{} : chosen->candidate, figures());
}

/// As "process -1.2 % (-3.0 to +0.7 %), full -12.1 % (-16.0 to -8.0 %)".
std::string AffinityTrial::figures() const {
    std::string text;
    for (const auto& side : sides_) {
        if (&side == &sides_.front()) continue;
        const std::span all(sides_.front().rounds);
        const Side none{{}, {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(side.rounds.size())}};
        const auto gain = change(none, side);
        text += fmt::format("{}{} {} % ({} to {} %)", text.empty() ? "" : ", ", to_string(side.candidate),
                            measure::signed_percent(gain.estimate, 1), measure::signed_percent(gain.low, 1),
                            measure::signed_percent(gain.high, 1));
    }
    return fmt::format("CPU time per GB against none, after {} rounds: {}", rounds_, text);
}

void AffinityTrial::finish(bool is_decided, const AutoCandidate& choice, std::string why) {
    end_ = End{is_decided, choice, std::move(why)};
}

bool is_due(const AutoChoice& choice, const ChoiceBasis& now, std::int64_t time) {
    const auto age = time - choice.time;
    if (age < hour) return false;
    if (choice.basis.text_hash != now.text_hash || choice.basis.machine != now.machine) return true;
    const double before = choice.basis.bytes_per_second;
    const bool is_other = now.bytes_per_second > 2 * before || now.bytes_per_second < before / 2;
    return is_other && age >= hour << std::min(choice.confirmed, most_doublings);
}

bool is_traffic_enough(double bytes_per_second, double round) {
    return bytes_per_second * round >= least_bytes_of_round;
}

} // namespace affinityd::planner
