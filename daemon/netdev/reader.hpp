// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "netdev/nic.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::netdev {

/// Every interface below /sys/class/net with device, node, MSI list, queues and lower devices, ascending by
/// ifindex. Works on recordings. On the live root, netlink adds addresses and channels, and NAPI and queue
/// links where the kernel has them. An Error if any list cannot be read: no NIC looks absent, or without
/// queues, for want of a file descriptor.
[[nodiscard]] Result<std::vector<Nic>> read_nics(const host::Root& root);

/// The same of one interface: its own files, and netlink asked for it alone. No value: no interface has the
/// name (any more).
[[nodiscard]] Result<std::optional<Nic>> read_nic(const host::Root& root, const std::string& name);

} // namespace affinityd::netdev
