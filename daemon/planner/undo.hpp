// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/subject.hpp"

#include <memory>
#include <optional>
#include <string>

namespace affinityd::planner {

/// What is known of a subject that we changed and have not put back yet.
struct UndoRecord {
    machine::Setting original; ///< before our first change
    machine::Setting asked;    ///< what we asked for last
    machine::Setting granted;  ///< what the kernel made of it; equals `asked` until it was read back
    std::string policy;        ///< on whose behalf
    /// The value it was set to before the last change, if that was ours, too: a program may set again what it
    /// read earlier. Until the change is confirmed also the original: the daemon may be killed in between.
    std::optional<machine::Setting> before = std::nullopt;
    friend bool operator==(const UndoRecord&, const UndoRecord&) = default;
};
/// A record travels from the look at its subject to the write and back; null: we have not changed the
/// subject.
using UndoPointer = std::shared_ptr<const UndoRecord>;

/// Looks up the undo record of a subject.
class UndoLookup {
  public:
    virtual ~UndoLookup() = default;
    [[nodiscard]] virtual UndoPointer find(const machine::Subject& subject) const = 0;
};

} // namespace affinityd::planner
