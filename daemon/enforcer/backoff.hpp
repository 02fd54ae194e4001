// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/bounded_map.hpp"
#include "planner/action.hpp"
#include "planner/undo.hpp"

#include <chrono>
#include <optional>

namespace affinityd::enforcer {

/// Knows what is not to be touched for now, and for how long. Two writers must not fight over a subject for
/// ever: it is put right five times in a row, then left alone, each time for longer. An interrupt whose CPU
/// had no vector left stays where it was diverted to for ten minutes. Only subjects that ever made trouble
/// take memory, and at most `most_subjects`.
class Backoff {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::size_t most_subjects = 16384;

    /// True if the action would start or go on with a fight now, or ask again for what could not be had a
    /// moment ago. Never true for a restore. With `expects_changes` fights do not count: the kernel or a
    /// driver may have reset the subject.
    [[nodiscard]] bool rests(const planner::Action& action, Clock::time_point now,
                             bool expects_changes = false) const;

    /// True for a subject that had what we want (`record`) and is put right once more.
    [[nodiscard]] static bool is_correction(const planner::Action& action,
                                            const std::optional<planner::UndoRecord>& record) {
        return record && record->asked == action.to && !action.restore;
    }
    /// Called when a subject that had what we want (`record`) is about to be put right once more. True if it
    /// is to be left alone after that.
    bool correct(const planner::Action& action, const std::optional<planner::UndoRecord>& record,
                 Clock::time_point now);
    /// The action's CPUs had no vector left, and the interrupt got `granted` instead.
    void divert(const planner::Action& action, const machine::Setting& granted, Clock::time_point now);

    /// Why a subject is not where it should be.
    struct Note {
        enum class Kind : std::uint8_t { fought_over, diverted };
        Kind kind = Kind::fought_over;
        machine::Setting wanted, given; ///< for diverted
    };
    [[nodiscard]] std::optional<Note> note(const machine::Subject& subject, Clock::time_point now) const;

    /// How often the subject was put right in a row, lately.
    [[nodiscard]] unsigned corrections(const machine::Subject& subject) const {
        const auto* state = states_.find(subject);
        return state == nullptr ? 0 : state->corrections;
    }

    /// When a subject that was put right should be looked at again: 1, 2, 4, 8 s after that, or at the end of
    /// a rest. No value: it holds, or was never put right.
    [[nodiscard]] std::optional<Clock::time_point> next_look(const machine::Subject& subject,
                                                             Clock::time_point now) const;

    void forget(const machine::Subject& subject) { states_.erase(subject); } ///< it is gone
    void clear() { states_.clear(); } ///< somebody asked for everything anew
    [[nodiscard]] std::size_t size() const { return states_.size(); }

  private:
    struct State {
        unsigned corrections = 0; ///< in a row
        Clock::time_point corrected{};
        Clock::time_point rests_until{};
        machine::Setting wanted, given; ///< diverted: what could not be had, and what it got instead
        Clock::time_point diverted_until{};
    };
    BoundedMap<State> states_{most_subjects};
};

} // namespace affinityd::enforcer
