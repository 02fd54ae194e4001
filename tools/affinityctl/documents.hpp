// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "policy/diagnostic.hpp"
#include "policy/reader.hpp"

#include <string>
#include <vector>

namespace affinityctl {

/// Policy files that a command line names: files and folders in the order given, a later one of the same name
/// overrides, as in the daemon's folders; without any, the daemon's folders. Two files of one name that are
/// named one by one do not override each other, that would hide one of two things somebody asked about: a
/// finding says so. An Error if one cannot be read.
[[nodiscard]] affinityd::Result<std::vector<affinityd::policy::Document>>
policy_documents(const std::vector<std::string>& paths, std::vector<affinityd::policy::Diagnostic>& findings);

} // namespace affinityctl
