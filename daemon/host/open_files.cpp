// SPDX-License-Identifier: Apache-2.0
#include "host/open_files.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/resource.h>

namespace affinityd::host {

int allow_many_open_files() {
    constexpr rlim_t wanted = 65'536;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return errno;
    if (limit.rlim_cur >= std::min(wanted, limit.rlim_max)) return 0;
    limit.rlim_cur = std::min(wanted, limit.rlim_max);
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? 0 : errno;
}

} // namespace affinityd::host
