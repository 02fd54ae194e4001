// SPDX-License-Identifier: Apache-2.0
#include "app/queue_care.hpp"

#include "planner/near.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

using enforcer::Applied;
using enforcer::Outcome;
using planner::Action;

constexpr std::chrono::minutes divert_for{10}; ///< vectors come free when devices go: rarely
/// Passes are a minute apart, and irqbalance is slower than programs; the longest rest is about an hour.
constexpr Truce::Terms truce_terms{.window = std::chrono::minutes(10), .first = std::chrono::minutes(1)};
constexpr std::size_t most_tries = 64;
constexpr std::size_t most_states = 4096;

} // namespace

bool QueueCare::rests(const Action& action, Clock::time_point now) const {
    if (executor_.never_moves(action.subject)) return true;
    if (states_.empty()) return false;
    const auto found = states_.find(planner::to_string(action.subject));
    if (found == states_.end()) return false;
    const auto& state = found->second;
    if (state.truce.holds(now) && !action.restore) return true;
    return now < state.again && action.to == state.wanted && action.from == state.given;
}

std::string QueueCare::note(const planner::Subject& subject, Clock::time_point now) const {
    const auto found = states_.find(planner::to_string(subject));
    if (found == states_.end()) return {};
    const auto& state = found->second;
    if (state.truce.holds(now)) return "fought over: somebody else keeps changing it, left alone for a while";
    if (now < state.again)
        return fmt::format("CPU {} has no interrupt vector left: on CPU {} instead", state.wanted.to_list(),
                           state.given.to_list());
    return {};
}

std::optional<Applied> QueueCare::run(const Action& action, const planner::Held* held,
                                      const planner::Placements& placements,
                                      const topology::Topology& topology, Clock::time_point now) {
    if (rests(action, now)) return std::nullopt;
    // It had what we want and has it no more: by another hand, or because the driver made its vectors anew.
    if (!expects_changes_ && held != nullptr && held->asked == action.to && states_.size() < most_states &&
        states_[planner::to_string(action.subject)].truce.correct(truce_terms, now))
        tell_of_fight(log_, action);
    auto applied = executor_.run(action, topology);
    if (applied.outcome == Outcome::full) applied = divert(action, placements, topology, now);
    return applied;
}

Applied QueueCare::divert(const Action& action, const planner::Placements& placements,
                          const topology::Topology& topology, Clock::time_point now) {
    Applied applied{Outcome::full, {}, 0};
    auto others = planner::nearest_others(placements, topology, action);
    if (others.size() > most_tries) others.resize(most_tries);
    for (const unsigned cpu : others) {
        Action other = action;
        other.to = {cpu};
        applied = executor_.run(other, topology);
        if (applied.outcome == Outcome::full) continue;
        if (!took_effect(applied.outcome)) break;
        if (states_.size() < most_states) {
            auto& state = states_[planner::to_string(action.subject)];
            state.wanted = action.to;
            state.given = applied.granted;
            state.again = now + divert_for;
        }
        log_.warn(fmt::format("{}: CPU {} has no interrupt vector left, so it is on CPU {}",
                              planner::to_string(action.subject), action.to.to_list(),
                              applied.granted.to_list()));
        break;
    }
    return applied;
}

} // namespace affinityd::app
