// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "planner/action.hpp"

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace affinityd::state {

/// Builds a line of fields, each with a tab before it.
class LineWriter {
  public:
    explicit LineWriter(std::string_view kind) {
        text_.reserve(usual_length);
        text_ += kind;
    }
    LineWriter& plain(std::string_view field) {
        text_ += '\t';
        text_ += field;
        return *this;
    }
    LineWriter& number(std::integral auto field) {
        const fmt::format_int digits(field);
        return plain({digits.data(), digits.size()});
    }
    /// Tabs, line ends and other control bytes as %XX, and the percent sign itself.
    LineWriter& escaped(std::string_view field);
    [[nodiscard]] const std::string& text() const { return text_; } ///< so far
    /// With a checksum and the line end.
    [[nodiscard]] std::string finish();

  private:
    static constexpr std::size_t usual_length = 160;
    std::string text_;
};

/// The text that escaped() was given.
[[nodiscard]] std::string unescaped(std::string_view text);

/// No value: it is no list of CPUs, or names one that no kernel has. A set takes memory up to its last one.
[[nodiscard]] std::optional<CpuSet> parse_cpus(std::string_view field);

/// The fields of a line without its end; empty if it is torn or mixed up.
[[nodiscard]] std::vector<std::string_view> fields_of(std::string_view line);

/// Each file of this room begins with a line that names the boot: a change before the machine was started
/// anew is not in force any more. With its line end; "": the boot has no id.
[[nodiscard]] std::string header();
[[nodiscard]] bool is_header(std::string_view line);
/// The boot that a file is of, by its first line.
enum class FileBoot : std::uint8_t {
    ours,    ///< or empty
    damaged, ///< the line is, and does not prove that it is of another one
    another, ///< nothing in it is in force
};
[[nodiscard]] FileBoot boot_of(std::string_view text);

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
    /// Masks that the task had from us before those of `undo`, the newest last: its children may have them.
    std::vector<CpuSet> earlier{};
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
    /// ours, compared on online CPUs, from the time in which the creator had masks of ours. `born`: clock
    /// ticks since boot; 0: not known.
    [[nodiscard]] bool explains(const CpuSet& mask, const CpuSet& online, std::uint64_t born) const;
};

/// A line of the undo journal. Names are escaped: they are hostile bytes.
struct Line {
    machine::Subject subject;
    Record record; ///< without terms: nothing is known of the subject any more
};

/// The masks of a task's record that are ours.
[[nodiscard]] std::vector<CpuSet> masks_of(const Terms& terms);
/// "original, asked, ..., session, earlier masks" separated by tabs.
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
