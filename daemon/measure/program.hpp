// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace affinityd::measure {

/// The affinity-ttcp that belongs to the running program: beside it, in the bin folder of the same
/// installation, or where the build puts it. PATH is never searched. No value if no such file can be run.
[[nodiscard]] std::optional<std::string> find_ttcp();

/// The same for a program in `folder`, which ends with a '/'.
[[nodiscard]] std::optional<std::string> find_ttcp(const std::string& folder);

} // namespace affinityd::measure
