// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"
#include "inventory/local_socket.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <string>

namespace affinityd::inventory {

/// A list of sockets as a file, and what sock_diag calls the same list.
struct NetFile {
    const char* name; ///< below proc or proc/PID
    Protocol protocol;
    int family; ///< AF_INET or AF_INET6
};
extern const std::array<NetFile, 4> net_files;

/// Hands on the sockets in one of the files below `folder` ("" or "PID/"): of the first `limit` bytes, whole
/// lines only. A file that is not there has none. False: there may be more.
Result<bool> read_net_file(const host::Root& root, const std::string& folder, const NetFile& file,
                           std::size_t limit, const std::function<void(const LocalSocket&)>& take);

} // namespace affinityd::inventory
