// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "state/records.hpp"

#include <cstdint>
#include <optional>

namespace affinityd::state {

/// Why a subject that we changed has no undo record any more, although it is there.
enum class Parting : std::uint8_t {
    kept,     ///< it was left as it is on purpose: on_stop: keep
    put_back, ///< it has its original again, or what somebody else gave it
};

/// The last records of subjects that live on without one. If such a subject has a mask from us later, its
/// original is known here, and our mask is not taken for it. There are at most `most_kept` and
/// `most_put_back` of them, of tasks and of queues each; others make room.
class PastRecords {
  public:
    static constexpr std::size_t most_kept = 262144;
    static constexpr std::size_t most_put_back = 16384;

    struct Past {
        planner::UndoRecord record;
        Parting parting = Parting::kept;
    };
    [[nodiscard]] std::optional<Past> find(const machine::Subject& subject) const;
    [[nodiscard]] bool contains(const machine::Subject& subject) const {
        return size() > 0 && (kept_.contains(subject) || put_back_.contains(subject));
    }
    /// It takes the place of what was known of the subject. The records that have to make room are the
    /// caller's to erase.
    [[nodiscard]] std::optional<machine::Subject> put(const machine::Subject& subject,
                                                      planner::UndoRecord record, Parting parting);
    void erase(const machine::Subject& subject);

    [[nodiscard]] const Records& kept() const { return kept_; }
    [[nodiscard]] const Records& put_back() const { return put_back_; }
    /// The next record of a walk, those that were kept first. No value: the end.
    struct Cursor {
        Records::Cursor kept, put_back;
    };
    struct Found {
        Entry entry;
        Parting parting = Parting::kept;
    };
    [[nodiscard]] std::optional<Found> next(Cursor& cursor) const;
    [[nodiscard]] std::size_t size() const { return kept_.size() + put_back_.size(); }

  private:
    [[nodiscard]] Records& of(Parting parting) { return parting == Parting::kept ? kept_ : put_back_; }
    Records kept_, put_back_;
    Records::Cursor hand_kept_, hand_put_back_; ///< who makes room next
};

} // namespace affinityd::state
