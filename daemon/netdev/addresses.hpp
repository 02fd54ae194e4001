// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "netdev/nic.hpp"

#include <vector>

namespace affinityd::netdev {

/// Fills Nic::addresses by rtnetlink (RTM_GETADDR) for this process's network namespace. Interfaces are told
/// by index.
[[nodiscard]] Result<void> read_addresses(std::vector<Nic>& nics);

} // namespace affinityd::netdev
