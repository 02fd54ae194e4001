// SPDX-License-Identifier: Apache-2.0
#include "enforcer/backoff.hpp"

#include <algorithm>

namespace affinityd::enforcer {

namespace {

constexpr std::chrono::minutes diverted_for{10}; // vectors come free when devices go: rarely
constexpr unsigned fight_threshold = 5;
constexpr unsigned most_doublings = 6;

struct Terms {
    std::chrono::seconds window; ///< corrections further apart than this are no fight
    std::chrono::seconds first;  ///< how long the first rest lasts; each further one twice as long
};
/// Programs that set masks of their own do so every few seconds; the longest rest is about ten minutes.
constexpr Terms task_terms{std::chrono::minutes(10), std::chrono::seconds(10)};
/// Passes are a minute apart, and irqbalance is slower than programs; the longest rest is about an hour.
constexpr Terms other_terms{std::chrono::minutes(10), std::chrono::minutes(1)};

const Terms& terms_of(const machine::Subject& subject) {
    return std::holds_alternative<machine::TaskMask>(subject) ? task_terms : other_terms;
}

} // namespace

bool Backoff::rests(const planner::Action& action, Clock::time_point now, bool expects_changes) const {
    if (action.restore) return false;
    const auto* state = states_.find(action.subject);
    if (state == nullptr) return false;
    if (now < state->rests_until && !expects_changes) return true;
    return now < state->diverted_until && action.to == state->wanted && action.from == state->given;
}

bool Backoff::correct(const planner::Action& action, const std::optional<planner::UndoRecord>& record,
                      Clock::time_point now) {
    if (!is_correction(action, record)) return false;
    auto& state = states_[action.subject];
    const Terms& terms = terms_of(action.subject);
    if (now - std::max(state.corrected, state.rests_until) > terms.window) state.corrections = 0;
    state.corrected = now;
    if (++state.corrections < fight_threshold) return false;
    state.rests_until =
        now + terms.first * (1U << std::min(state.corrections - fight_threshold, most_doublings));
    return true;
}

void Backoff::divert(const planner::Action& action, const machine::Setting& granted, Clock::time_point now) {
    auto& state = states_[action.subject];
    state.wanted = action.to;
    state.given = granted;
    state.diverted_until = now + diverted_for;
}

std::optional<Backoff::Clock::time_point> Backoff::next_look(const machine::Subject& subject,
                                                             Clock::time_point now) const {
    constexpr std::chrono::seconds soon{1}, long_enough{16};
    const auto* state = states_.find(subject);
    if (state == nullptr || state->corrections == 0) return std::nullopt;
    if (now < state->rests_until) return state->rests_until;
    const auto held = now - state->corrected;
    if (held >= long_enough) return std::nullopt;
    const Clock::duration least = soon * (1U << std::min(state->corrections - 1, fight_threshold));
    return now + std::max(least, held);
}

std::optional<Backoff::Note> Backoff::note(const machine::Subject& subject, Clock::time_point now) const {
    const auto* state = states_.find(subject);
    if (state == nullptr) return std::nullopt;
    if (now < state->rests_until) return Note{Note::Kind::fought_over, {}, {}};
    if (now < state->diverted_until) return Note{Note::Kind::diverted, state->wanted, state->given};
    return std::nullopt;
}

} // namespace affinityd::enforcer
