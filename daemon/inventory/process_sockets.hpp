// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"
#include "inventory/local_socket.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace affinityd::inventory {

/// Inodes of the sockets that a process has open, ascending; the first `most` of its descriptors are looked
/// at. One readlink(2) for each: only for processes that matter. None if the process is gone. An Error: its
/// descriptors cannot be listed.
[[nodiscard]] Result<std::vector<std::uint64_t>> socket_inodes(const host::Root& root, int pid,
                                                               std::size_t most = 65536);

// `process` is a process's folder below /proc: "PID", or "PID/task/TID" where its main thread has ended.

/// Listening sockets of the namespace that it lives in, by its files net/{tcp,udp}{,6}. Only the
/// first 256 KiB of each are read (some 1,700 sockets): the owner of a namespace may fill them.
[[nodiscard]] Result<std::vector<LocalSocket>> read_namespace_listeners(const host::Root& root,
                                                                        const std::string& process);

/// TCP and UDP ports that the process listens on in the network namespace that it lives in, ascending, each
/// once; none if that is this one. `inodes`: of its sockets, ascending.
[[nodiscard]] std::vector<std::uint16_t> foreign_listen_ports(const host::Root& root,
                                                              const std::string& process,
                                                              const std::vector<std::uint64_t>& inodes);

/// False if the process is known to live in another network namespace than this one.
[[nodiscard]] bool shares_network_namespace(const host::Root& root, int pid);

} // namespace affinityd::inventory
