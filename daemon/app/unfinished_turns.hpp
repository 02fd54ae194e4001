// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/turn.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <variant>

#include <sys/types.h>

namespace affinityd::app {

/// Processes that events have named and that are too large to be looked at at once. Persons have their turns
/// one after the other, so that nobody waits behind another's many large processes. Of each person at most 16
/// are under way, since each of them holds a descriptor and memory; of the others only the name is kept, and
/// they begin anew. Bounded: 4,096 of a person, 16,384 in all.
class UnfinishedTurns {
  public:
    /// A process to begin with.
    struct Name {
        int pid = 0;
        ProcessChange change;
    };
    using Next = std::variant<Turn, Name>;

    [[nodiscard]] bool empty() const { return names_.empty(); }
    /// An event names a process again. True: it is among these, and has another turn after this one.
    [[nodiscard]] bool name_again(int pid, const ProcessChange& change);
    /// `person`: whose process it is. False: there are too many. What take() gave last goes on with its turn;
    /// another one waits if others of that person do.
    [[nodiscard]] bool put(uid_t person, Turn turn);
    /// Takes out what is next; what has named a turn's process meanwhile is in its `again`. There must be
    /// one.
    [[nodiscard]] Next take();
    /// Whose turn take() took.
    [[nodiscard]] uid_t taken_from() const { return taken_from_; }
    /// What take() gave last is finished; if its process is put again, that is another turn.
    void finished() { taken_ = 0; }
    void clear();

  private:
    struct Person {
        std::deque<Turn> under_way;
        std::deque<int> waiting;
        bool began_one = false; ///< last time; then one goes on
    };
    [[nodiscard]] std::optional<ProcessChange> take_name(int pid);

    std::map<uid_t, Person> persons_;
    std::deque<uid_t> turns_; ///< of those who have some
    /// Of all: why one that waits is looked at, or what has named again one that is under way.
    std::unordered_map<int, std::optional<ProcessChange>> names_;
    uid_t taken_from_ = 0;
    int taken_ = 0; ///< process id
};

} // namespace affinityd::app
