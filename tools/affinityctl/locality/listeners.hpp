// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"

#include <cstddef>
#include <span>

namespace affinityctl {

/// How many sockets the processes have that listen at one address and port together: SO_REUSEPORT gives each
/// worker its own. The greatest number of any address; 0: they do not listen, or it cannot be read. Only what
/// the kernel lists is looked at, no socket is touched; of many processes the first 64.
[[nodiscard]] std::size_t listeners_at_one_port(const affinityd::host::Root& root, std::span<const int> pids);

} // namespace affinityctl
