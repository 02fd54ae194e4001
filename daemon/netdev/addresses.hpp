// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "netdev/nic.hpp"

#include <span>

namespace affinityd::netdev {

/// Fills Nic::addresses, ascending, by rtnetlink (RTM_GETADDR) for this process's network namespace.
/// Interfaces are told apart by index. For a single NIC the kernel is asked for that interface alone.
[[nodiscard]] Result<void> read_addresses(std::span<Nic> nics);

} // namespace affinityd::netdev
