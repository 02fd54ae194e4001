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

bool Backoff::correct(const planner::Action& action, const planner::UndoPointer& record,
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

bool Refusals::add(const machine::Subject& subject, Refusal refusal, bool expects_changes) {
    const bool is_irq = std::holds_alternative<machine::IrqMask>(subject);
    // A task of the kernel's that is immovable may become movable; a managed interrupt never does. But a line
    // that is being set up or taken down refuses with the same errno.
    const bool is_momentary = is_of_the_moment(refusal.outcome);
    const bool is_unclear =
        expects_changes && (is_momentary || (refusal.outcome == Outcome::immovable && is_irq));
    if (refusal.outcome == Outcome::immovable && is_irq && !is_unclear) permanent_[subject] = {};
    const auto* known = shown_.find(subject);
    const bool is_same = known != nullptr && known->outcome == refusal.outcome && known->code == refusal.code;
    refusal.since = is_same ? known->since : passes_;
    const bool was_told = is_same && known->is_told;
    // Where more are refused than are remembered, none can wait for the next pass.
    const bool waits = is_momentary && refusal.since == passes_ && shown_.size() < most_shown;
    refusal.is_told = was_told || (!is_unclear && !waits);
    const bool is_news = refusal.is_told && !was_told;
    shown_[subject] = std::move(refusal);
    return is_news;
}

std::string to_string(const Refusal& refusal) {
    const std::string text(to_string(refusal.outcome));
    return refusal.code == 0 ? text : text + ": " + std::generic_category().message(refusal.code);
}

void Refusals::erase(const machine::Subject& subject) {
    shown_.erase(subject);
    permanent_.erase(subject);
}

machine::Subject Refusals::rotate() {
    shown_.rotate();
    return shown_.entries().back().first;
}

} // namespace affinityd::enforcer
