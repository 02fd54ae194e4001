// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace affinityd::inventory {

/// Ids of this machine's processes through libproc2, ascending. False: the library could not serve.
[[nodiscard]] bool list_pids_by_proc2(std::vector<int>& pids);

} // namespace affinityd::inventory
