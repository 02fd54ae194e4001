// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

namespace affinityd::test {

inline bool is_readable(int fd, int patience_ms) {
    pollfd asked{fd, POLLIN, 0};
    return ::poll(&asked, 1, patience_ms) == 1;
}

} // namespace affinityd::test
