// SPDX-License-Identifier: Apache-2.0
#include "app/queue_count_gate.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace affinityd::app {

namespace {

using machine::QueueCount;
using machine::Setting;

/// Numbers of queues are compared as they are: no CPU that is offline makes a difference.
bool is_as_given(const planner::UndoRecord& record, const Setting& present) {
    return present == record.granted || present == record.asked || present == record.before;
}

} // namespace

std::string_view to_string(QueueCountGate::Verdict verdict) {
    using Verdict = QueueCountGate::Verdict;
    switch (verdict) {
    case Verdict::settles:
        return "it is changed when the number of lanes has been the same for a while";
    case Verdict::waits:
        return "it waits: an interface is reset for it, which is done seldom (requeue in affinityd.yaml)";
    case Verdict::foreign:
        return "somebody else has changed it, and it is left alone until: affinityctl apply";
    default:
        return {};
    }
}

QueueCountGate::Terms QueueCountGate::terms_of(std::chrono::seconds interval) {
    return {std::max<Clock::duration>(std::chrono::seconds(1), interval / 10), interval};
}

/// Of one that was not seen yet, the record says what it should have. Its original is as good: the driver was
/// loaded anew, or an administrator's script has run.
bool QueueCountGate::is_others(const State& state, const Look& look) {
    if (state.takes_any) return false;
    if (state.seen) {
        const bool was_put_back = state.had_record && !look.record;
        return state.seen != look.present && !was_put_back;
    }
    return look.record && !is_as_given(*look.record, look.present) && look.present != look.record->original;
}

QueueCountGate::Verdict QueueCountGate::see(const Look& look, const Terms& terms, Clock::time_point now) {
    const State fresh{
        .ifindex = look.subject.ifindex, .folder = look.subject.folder, .wanted = look.wanted, .since = now};
    const auto [at, is_new] = states_.try_emplace(look.subject, fresh);
    auto& state = at->second;
    if (state.ifindex != look.subject.ifindex || state.folder != look.subject.folder)
        state = fresh; // another interface of the device: the driver was loaded anew
    const bool stays_foreign = state.verdict == Verdict::foreign && !(state.had_record && !look.record);
    const bool is_foreign = stays_foreign || is_others(state, look);
    if (state.wanted != look.wanted) {
        state.wanted = look.wanted;
        state.since = now;
    }
    state.seen = look.present;
    state.takes_any = false;
    state.had_record = look.record.has_value();
    state.was_seen = true;
    state.verdict = look.is_enough ? Verdict::in_place
                    : is_foreign   ? Verdict::foreign
                                   : judge(state, terms, now);
    return state.verdict;
}

QueueCountGate::Clock::duration QueueCountGate::pause_of(const State& state, const Terms& terms) {
    constexpr unsigned most_doublings = 4;
    return terms.pause * (1U << std::min(state.refusals, most_doublings));
}

QueueCountGate::Verdict QueueCountGate::judge(const State& state, const Terms& terms,
                                              Clock::time_point now) const {
    if (now - state.since < terms.stable) return Verdict::settles;
    if (state.changed && now - *state.changed < pause_of(state, terms)) return Verdict::waits;
    if (last_change_ && now - *last_change_ < terms.stable) return Verdict::waits;
    return Verdict::go;
}

void QueueCountGate::changed(const QueueCount& subject, const Setting& present, bool took_effect,
                             Clock::time_point now) {
    auto& state =
        states_
            .try_emplace(subject, State{.ifindex = subject.ifindex, .folder = subject.folder, .since = now})
            .first->second;
    state.changed = now;
    if (took_effect) {
        state.seen = present;
        state.had_record = true;
        state.refusals = 0;
        state.verdict = Verdict::in_place;
        last_change_ = now;
    } else {
        ++state.refusals;
        state.verdict = Verdict::waits;
    }
}

bool QueueCountGate::rests(const QueueCount& subject, const Terms& terms, Clock::time_point now) const {
    const auto found = states_.find(subject);
    if (found == states_.end() || found->second.refusals == 0) return false;
    const auto& state = found->second;
    return state.changed && now - *state.changed < pause_of(state, terms);
}

QueueCountGate::Verdict QueueCountGate::verdict(const QueueCount& subject) const {
    const auto found = states_.find(subject);
    return found == states_.end() ? Verdict::in_place : found->second.verdict;
}

void QueueCountGate::begin_anew() {
    last_change_.reset();
    for (auto& [subject, state] : states_) {
        state.takes_any = true;
        state.changed.reset();
        state.refusals = 0;
        state.verdict = Verdict::in_place;
    }
}

void QueueCountGate::end_round(const Terms& terms, Clock::time_point now) {
    for (auto entry = states_.begin(); entry != states_.end();) {
        auto& state = entry->second;
        const bool is_of_use = std::exchange(state.was_seen, false) ||
                               (state.changed && now - *state.changed < pause_of(state, terms));
        entry = is_of_use ? std::next(entry) : states_.erase(entry);
    }
}

} // namespace affinityd::app
