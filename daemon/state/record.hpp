// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/action.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace affinityd::state {

/// Where a process comes from: it shares this with its children, and they keep it when it has ended.
struct Descent {
    std::string group; ///< its control group; "": not known
    int session = 0;   ///< getsid(2); 0: not known
    /// "/" and the session of init tell nothing: nearly every task of a machine without control groups has
    /// these.
    [[nodiscard]] bool may_be_of(const Descent& other) const {
        return (group.size() > 1 && group == other.group) || (session > 1 && session == other.session);
    }
};

/// Terms that are the same in the records of thousands of tasks, kept once.
struct Terms {
    planner::UndoRecord undo;
    Descent descent; ///< of tasks only
};

/// The use of a subject's record.
enum class Standing : std::uint8_t {
    held, ///< in force: the original is to be restored
    kept, ///< the subject stays as it is on purpose (on_stop: keep), until a policy wants it again
    back, ///< the subject has its original again, or what another program gave it: explains its children
    gone, ///< the subject has ended: explains its children for a while
};

/// The one undo record of a subject.
struct Record {
    std::shared_ptr<const Terms> terms;
    Standing standing = Standing::held;
    std::uint64_t since = 0; ///< when its first mask was given, in clock ticks since boot; 0: not known
    std::uint64_t until = 0; ///< when it had the last one, of what is back or gone; 0: it has it

    /// Shares the ownership of the terms.
    [[nodiscard]] planner::UndoPointer undo() const { return {terms, &terms->undo}; }
    /// True if a task that was created by this one at `born` and has `mask` has that from us: it is a mask of
    /// ours, compared on online CPUs, from the time in which the creator had it. `born`: clock ticks since
    /// boot; 0: not known.
    [[nodiscard]] bool explains(const CpuSet& mask, const CpuSet& online, std::uint64_t born) const;
};

/// One line of the undo journal. Names are escaped: they are hostile bytes.
struct Line {
    machine::Subject subject;
    Record record; ///< without terms: nothing is known of the subject any more
};

/// "original, asked, ..., session" separated by tabs.
[[nodiscard]] std::string to_text(const Terms& terms);
/// The whole line with a checksum and the line end. `terms`: to_text(*record.terms), "" without terms.
[[nodiscard]] std::string to_line(const machine::Subject& subject, const Record& record,
                                  std::string_view terms);
/// Reads a line without its end. No value: the line is torn, or no record.
[[nodiscard]] std::optional<Line> parse_line(std::string_view line);

/// Orders subjects by identity: tasks first, those of a process together. A virtual interface is known by its
/// index, which outlasts its name.
struct SubjectOrder {
    bool operator()(const machine::Subject& a, const machine::Subject& b) const;
};

/// A subject that we changed, with what is known of it.
struct Entry {
    machine::Subject subject;
    planner::UndoPointer record;
};

} // namespace affinityd::state
