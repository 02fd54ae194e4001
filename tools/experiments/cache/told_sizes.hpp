// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/cache/places.hpp"

#include <string>

namespace affinityd::experiments {

/// What the C library tells of the caches of this machine, for kernels that tell nothing (virtual machines
/// often hide what they read it from). Zero is what it does not tell either; otherwise the three ascend. Its
/// last level may be that of all cores of a socket together. Source: sysconf(3), _SC_LEVEL1_DCACHE_SIZE and
/// those after it.
[[nodiscard]] CacheSizes sizes_of_c_library();

/// That `sizes` come from there, for who reads figures.
[[nodiscard]] std::string remark_of_c_library(const CacheSizes& sizes);

} // namespace affinityd::experiments
