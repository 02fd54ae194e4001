// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/globals.hpp"
#include "policy/policy.hpp"

#include <expected>
#include <string>
#include <vector>

namespace affinityctl {

/// The folders that a running daemon reads, else the standard ones. A recorded machine has no daemon.
[[nodiscard]] std::vector<std::string> daemon_folders(const Globals& globals);

/// Warns on standard error of folders that a command line names and that are not there: their policies would
/// be missed without a word.
void warn_of_missing(const std::vector<std::string>& folders);

/// The policies of the files and folders that a command line names, or of daemon_folders() if it names none.
/// Findings are on standard error, those that are errors make it a failure.
[[nodiscard]] std::expected<affinityd::policy::PolicySet, CallError>
read_policy_set(const std::vector<std::string>& paths, const Globals& globals);

/// The policies that would be in force if the files and folders `paths` were installed beside what
/// daemon_folders() have now.
struct Preview {
    affinityd::policy::PolicySet set;
    std::vector<std::string> names; ///< of the policies that `paths` give
};

/// Faults of installed files are warned of, and the file is left out; one in `paths` is a failure.
[[nodiscard]] std::expected<Preview, CallError> preview_policy_set(const std::vector<std::string>& paths,
                                                                   const Globals& globals);

} // namespace affinityctl
