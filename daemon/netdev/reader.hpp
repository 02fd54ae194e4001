// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "netdev/nic.hpp"

#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::netdev {

/// Every interface below /sys/class/net with device, node, MSI list, queues and lower devices, ascending by
/// ifindex. Works on recordings. On the live root, netlink adds addresses, and NAPI and queue links where the
/// kernel has them.
[[nodiscard]] Result<std::vector<Nic>> read_nics(const host::Root& root);

} // namespace affinityd::netdev
