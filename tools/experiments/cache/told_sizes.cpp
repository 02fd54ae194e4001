// SPDX-License-Identifier: Apache-2.0
#include "experiments/cache/told_sizes.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::experiments {

namespace {

std::uint64_t told(int name) { return static_cast<std::uint64_t>(std::max(0L, ::sysconf(name))); }

} // namespace

CacheSizes sizes_of_c_library() {
    const auto first = told(_SC_LEVEL1_DCACHE_SIZE);
    if (first == 0) return {};
    const auto own = std::max(first, told(_SC_LEVEL2_CACHE_SIZE));
    return {first, own, std::max({own, told(_SC_LEVEL3_CACHE_SIZE), told(_SC_LEVEL4_CACHE_SIZE)})};
}

std::string remark_of_c_library(const CacheSizes& sizes) {
    return fmt::format(
        "the kernel does not say how large the caches are: these are the C library's sizes (getconf -a), of "
        "which the last level, {}, may be that of all cores together; --caches gives others",
        bytes_words(sizes.last));
}

} // namespace affinityd::experiments
