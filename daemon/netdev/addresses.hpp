// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "netdev/nic.hpp"
#include "netdev/ways.hpp"

#include <optional>
#include <span>
#include <vector>

struct nl_sock;

namespace affinityd::netdev {

/// Fills Nic::addresses, ascending, by rtnetlink (RTM_GETADDR) for this process's network namespace.
/// Interfaces are told apart by their numbers, in ascending order of which they are. For a single NIC the
/// kernel is asked for that interface alone. EAGAIN: some address came or went during each of the attempts;
/// of one interface, all addresses are told at once, so that this hardly happens.
[[nodiscard]] Result<void> read_addresses(std::span<Nic> nics);

/// Fills Link::addresses of the links of a namespace, by its number in this one (no value: this one itself).
[[nodiscard]] Result<void> read_addresses(nl_sock& socket, std::optional<int> space,
                                          std::vector<Link>& links);

/// Fills Nic::other_names in the same way (RTM_GETLINK); a kernel that does not list them has none.
[[nodiscard]] Result<void> read_other_names(std::span<Nic> nics);

} // namespace affinityd::netdev
