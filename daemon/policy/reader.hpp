// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "policy/diagnostic.hpp"
#include "policy/policy.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::policy {

/// A file's text and where it comes from.
struct Document {
    std::string path; ///< for messages; its last part without .yaml names the policy
    std::string text;
    std::string fault{}; ///< why it cannot be read or must not be; its text is empty then, and masks nothing
    bool is_named = false; ///< a person named it: it is read whatever its ending; path "-" is standard input
};

/// The name that a file gives to its policy, good or not.
[[nodiscard]] std::string_view policy_name(std::string_view path);

/// The result of reading: the set is whole only if no diagnostic is an error.
struct ReadResult {
    PolicySet set;
    std::vector<Diagnostic> diagnostics;
    [[nodiscard]] bool ok() const;
};

/// Reads and checks documents given in order of precedence, lowest folder first: a later one of the same name
/// replaces an earlier one, an empty one masks it. Pure; yaml-cpp is known to the source file only.
/// Everything that can be known without a machine is checked here: planner/check.hpp adds what needs one.
[[nodiscard]] ReadResult read_policies(const std::vector<Document>& documents);

/// Fills source_line of those findings that have none, from the documents they are about: for checks that
/// come later and know values only.
void add_source_lines(std::vector<Diagnostic>& diagnostics, const std::vector<Document>& documents);

/// By file, line and column; findings at one place keep their order.
void sort_by_place(std::vector<Diagnostic>& diagnostics);

/// Where policies come from by default, lowest precedence first, in the order of
/// systemd.unit(5): the distribution's, this boot's, the administrator's.
[[nodiscard]] std::vector<std::string> standard_folders();

/// The *.yaml files of the folders, lowest precedence first, in order of name inside a folder. Folders that
/// are not there are passed over; a file that cannot be read has that as its fault (an unreadable policy must
/// not pass for a missing one). An Error: a folder that cannot be read. Hidden files, editors' backups and
/// other endings are passed over.
[[nodiscard]] Result<std::vector<Document>> read_folders(const std::vector<std::string>& folders);

/// The same in steps: the paths of these files, and what is in one of them; no value: it was removed since.
[[nodiscard]] Result<std::vector<std::string>> list_folders(const std::vector<std::string>& folders);
[[nodiscard]] std::optional<Document> read_document(const std::string& path);
/// There is no such file, and no link of that name either.
[[nodiscard]] bool is_removed(const std::string& path);

/// A process's program has no links in its path: where an `exe` is a path through links, the file that it
/// leads to on this machine now matches, too. Not for recorded machines.
void resolve_programs(PolicySet& policies);

} // namespace affinityd::policy
