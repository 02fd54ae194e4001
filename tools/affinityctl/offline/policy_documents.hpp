// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "policy/diagnostic.hpp"
#include "policy/reader.hpp"

#include <string>
#include <vector>

namespace affinityctl {

/// The policy files that a command line names: files and folders in the order given. In folders, a later file
/// of the same name overrides, as in the daemon's. Two files of the same name that are both listed themselves
/// do not: that would hide one of them, so a finding reports it. An Error if one cannot be read.
[[nodiscard]] affinityd::Result<std::vector<affinityd::policy::Document>>
policy_documents(const std::vector<std::string>& paths, std::vector<affinityd::policy::Diagnostic>& findings);

} // namespace affinityctl
