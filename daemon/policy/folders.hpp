// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "policy/reader.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityd::policy {

/// Where policies come from unless somebody says otherwise, lowest precedence first, in the order of
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
