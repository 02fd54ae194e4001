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

/// Fills Nic::channels by ethtool netlink (Linux 5.6 and later); interfaces whose driver knows no channels
/// are left alone. For a single NIC the kernel is asked for that interface alone.
[[nodiscard]] Result<void> read_channels(std::span<Nic> nics);

} // namespace affinityd::netdev
