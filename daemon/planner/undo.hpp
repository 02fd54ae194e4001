// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/subject.hpp"

#include <optional>
#include <string>

namespace affinityd::planner {

/// What is known of a subject that we changed and have not put back yet.
struct UndoRecord {
    machine::Setting original; ///< before our first change
    machine::Setting asked;    ///< what we asked for last
    machine::Setting granted;  ///< what the kernel made of it; equals `asked` until it was read back
    std::string policy;        ///< on whose behalf
    /// What it was set to before the last change, by us or originally, as long as it is not known whether
    /// that was made: the daemon may be killed in between.
    std::optional<machine::Setting> before = std::nullopt;
    friend bool operator==(const UndoRecord&, const UndoRecord&) = default;
};

/// Looks up the undo record of a subject.
class UndoLookup {
  public:
    virtual ~UndoLookup() = default;
    /// No value: we have not changed it.
    [[nodiscard]] virtual std::optional<UndoRecord> find(const machine::Subject& subject) const = 0;
    /// True if a subject that has a record had this setting from us earlier, and it is wider than what it was
    /// given since: a program sets again what it read while it settled.
    [[nodiscard]] virtual bool was_granted(const machine::Subject&, const machine::Setting&) const {
        return false;
    }
};

} // namespace affinityd::planner
