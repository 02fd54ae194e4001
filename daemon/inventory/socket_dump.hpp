// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/sockets.hpp"

namespace affinityd::inventory {

/// Appends what sock_diag answers for one protocol and address family (AF_INET, AF_INET6). At most `most` of
/// them. False: the kernel does not serve it.
[[nodiscard]] bool dump_sockets(Protocol protocol, int family, Wanted wanted, std::size_t most,
                                SocketList& list);

} // namespace affinityd::inventory
