// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace affinityd::measure {

/// Path of the affinity-ttcp that belongs to the running program: beside it, in the bin folder next to its
/// sbin, or where the build puts it. Nothing if there is none that can be run.
[[nodiscard]] std::optional<std::string> find_ttcp();

} // namespace affinityd::measure
