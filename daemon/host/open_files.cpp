// SPDX-License-Identifier: Apache-2.0
#include "host/open_files.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/resource.h>

namespace affinityd::host {

int allow_many_open_files(std::uint64_t most) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return errno;
    const auto wanted = std::min<rlim_t>(most, limit.rlim_max);
    if (limit.rlim_cur >= wanted) return 0;
    limit.rlim_cur = wanted;
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? 0 : errno;
}

} // namespace affinityd::host
