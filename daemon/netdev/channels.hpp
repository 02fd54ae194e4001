// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "netdev/nic.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

namespace affinityd::netdev {

/// The attributes of one answer to CHANNELS_GET: interface index and channels. No value if it
/// names no interface.
[[nodiscard]] std::optional<std::pair<unsigned, Channels>>
parse_channels(std::span<const std::byte> attributes);

/// Fills Nic::channels of interfaces in ascending order of their numbers, by ethtool netlink (Linux 5.6 and
/// later); those whose driver knows no channels are left alone. For a single NIC the kernel is asked for that
/// interface alone; a list of all ends at the first one that is not present (in power save, being reset), and
/// those after it have none. Source: ethnl_default_dumpit() in net/ethtool/netlink.c.
[[nodiscard]] Result<void> read_channels(std::span<Nic> nics);

} // namespace affinityd::netdev
