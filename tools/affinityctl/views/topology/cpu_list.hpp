// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"

#include <string>

namespace affinityctl {

/// "0-3,8", as people read it: a list of more than some 160 characters is cut and its length told,
/// "0,2,4,6,... (4096 CPUs)".
[[nodiscard]] std::string short_list(const affinityd::CpuSet& cpus);

} // namespace affinityctl
