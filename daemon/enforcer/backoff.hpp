// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/enforcer.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace affinityd::enforcer {

/// A value for each of some subjects, in the order of their arrival. If there are too many, the oldest makes
/// room: what others can grow must not eat memory, and must not hide what is new.
template <class Value>
class BoundedMap {
  public:
    using Entries = std::list<std::pair<machine::Subject, Value>>;
    explicit BoundedMap(std::size_t most) : most_(most) {}
    BoundedMap(const BoundedMap&) = delete;
    BoundedMap& operator=(const BoundedMap&) = delete;

    [[nodiscard]] const Value* find(const machine::Subject& subject) const {
        const auto found = index_.empty() ? index_.end() : index_.find(subject);
        return found == index_.end() ? nullptr : &found->second->second;
    }
    [[nodiscard]] bool contains(const machine::Subject& subject) const { return find(subject) != nullptr; }

    /// The subject's value, made anew if it has none.
    Value& operator[](const machine::Subject& subject) {
        if (const auto found = index_.find(subject); found != index_.end()) return found->second->second;
        if (entries_.size() >= most_) erase(entries_.begin());
        entries_.emplace_back(subject, Value{});
        index_.emplace(subject, std::prev(entries_.end()));
        return entries_.back().second;
    }

    void erase(const machine::Subject& subject) {
        if (index_.empty()) return;
        if (const auto found = index_.find(subject); found != index_.end()) erase(found->second);
    }
    void clear() {
        index_.clear();
        entries_.clear();
    }
    /// The oldest becomes the youngest. There must be one.
    void rotate() { entries_.splice(entries_.end(), entries_, entries_.begin()); }

    [[nodiscard]] const Entries& entries() const { return entries_; } ///< the oldest first
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] bool empty() const { return entries_.empty(); }

  private:
    void erase(typename Entries::iterator at) {
        index_.erase(at->first);
        entries_.erase(at);
    }
    std::size_t most_;
    Entries entries_;
    std::unordered_map<machine::Subject, typename Entries::iterator> index_;
};

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
                                            const planner::UndoPointer& record) {
        return record && record->asked == action.to && !action.restore;
    }
    /// Called when a subject that had what we want (`record`) is about to be put right once more. True if it
    /// is to be left alone after that.
    bool correct(const planner::Action& action, const planner::UndoPointer& record, Clock::time_point now);
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

/// A change that was asked for and not made.
struct Refusal {
    Outcome outcome = Outcome::failed;
    int code = 0; ///< errno, 0 if there was none
    machine::Setting wanted;
    std::uint64_t since = 0; ///< the pass in which it was first refused, or after which
    bool is_told = false;
};

/// "failed: Input/output error"
[[nodiscard]] std::string to_string(const Refusal& refusal);

/// The last refusal of each subject that is still refused, for status, and the interrupts that can never
/// move. Of the former there are at most `most_shown`, of the latter at most `most_permanent`; the oldest
/// makes room.
class Refusals {
  public:
    static constexpr std::size_t most_shown = 1000;
    static constexpr std::size_t most_permanent = 16384;

    /// True if this is to be told: the subject was not refused before, or for another reason. When CPUs,
    /// cpusets or interfaces change, a mask may have no CPU for a moment, or a line no handler (EINVAL, EIO):
    /// what the next pass mends anyway is not told, but what that pass is refused, too. `expects_changes`:
    /// such a change was announced, and no pass has dealt with it yet.
    bool add(const machine::Subject& subject, Refusal refusal, bool expects_changes = false);
    void begin_pass() { ++passes_; }
    /// Also those that can never move: an operator asked for it, and a line that was being reset looks the
    /// same.
    void try_all_again() { permanent_.clear(); }
    /// The subject has moved after all, or is gone.
    void erase(const machine::Subject& subject);
    [[nodiscard]] bool is_permanent(const machine::Subject& subject) const {
        return permanent_.contains(subject);
    }
    [[nodiscard]] const Refusal* find(const machine::Subject& subject) const { return shown_.find(subject); }

    /// Subject and refusal, the oldest first.
    [[nodiscard]] const BoundedMap<Refusal>::Entries& entries() const { return shown_.entries(); }
    [[nodiscard]] std::size_t size() const { return shown_.size(); }
    [[nodiscard]] bool empty() const { return shown_.empty(); }

    /// The next subject to be looked at; the one after it comes with the next call. There must be one.
    [[nodiscard]] machine::Subject rotate();

  private:
    struct Nothing {};
    BoundedMap<Refusal> shown_{most_shown};
    BoundedMap<Nothing> permanent_{most_permanent};
    std::uint64_t passes_ = 0;
};

} // namespace affinityd::enforcer
