// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"

#include <string>

#include <sys/types.h>
#include <sys/un.h>

namespace affinityd::host {

/// The address of a local socket, unix(7). An Error: the path is too long for one.
[[nodiscard]] Result<sockaddr_un> local_address(const std::string& path);

/// Binds a local socket of `type` (SOCK_STREAM, SOCK_SEQPACKET), which does not block, to `path` in place of
/// what is there, and listens. `umask`: 0177 for root only, 0111 for all users.
[[nodiscard]] Result<Fd> listen_at(const std::string& path, int type, mode_t umask);

} // namespace affinityd::host
