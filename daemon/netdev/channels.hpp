// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "netdev/nic.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace affinityd::netdev {

/// The attributes of one answer to CHANNELS_GET: interface index and channels. Nothing if it names no
/// interface.
[[nodiscard]] std::optional<std::pair<unsigned, Channels>>
parse_channels(std::span<const std::byte> attributes);

/// Fills Nic::channels by ethtool netlink (Linux 5.6 and later); interfaces whose driver knows no channels
/// are left alone.
[[nodiscard]] Result<void> read_channels(std::vector<Nic>& nics);

} // namespace affinityd::netdev
