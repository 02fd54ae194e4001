// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "netdev/nic.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace affinityd::netdev {

/// The attributes of one answer to CHANNELS_GET: interface index and channels. No value if it
/// names no interface.
[[nodiscard]] std::optional<std::pair<unsigned, Channels>>
parse_channels(std::span<const std::byte> attributes);

/// Fills Nic::channels of interfaces in ascending order of their numbers, by ethtool netlink (Linux 5.6 and
/// later); those whose driver knows no channels are left alone. For a single NIC the kernel is asked for that
/// interface alone.
[[nodiscard]] Result<void> read_channels(std::span<Nic> nics);

/// What the kernel says when it is asked for the channels of one interface, or of all.
struct ChannelAnswers {
    std::vector<std::pair<unsigned, Channels>> channels; ///< by interface index
    int code = 0; ///< the errno with which it refused, or ended the list early; 0: it did not
};
/// No value: of all interfaces.
using AskChannels = std::function<Result<ChannelAnswers>(std::optional<unsigned> ifindex)>;
/// The same by whoever answers. The kernel ends its list at the first interface that is not present (in power
/// save, being reset, dead: ENODEV), so that those after it are asked for one by one. Source:
/// ethnl_default_dumpit() in net/ethtool/netlink.c.
[[nodiscard]] Result<void> read_channels(std::span<Nic> nics, const AskChannels& ask);

/// The list only. True: it ended early, and those without channels are to be asked for one by one.
[[nodiscard]] Result<bool> list_channels(std::span<Nic> nics);
[[nodiscard]] Result<bool> list_channels(std::span<Nic> nics, const AskChannels& ask);

/// Numbers of channels to set; what has no value stays as it is.
struct ChannelChange {
    std::optional<unsigned> rx, tx, combined;
};

/// Sets them as `ethtool -L` does, which resets the interface: its interrupts may get new numbers, and its
/// link may be down for a moment. Waits until the driver has done it. The errno of its refusal, 0: done.
/// Among others EINVAL: too many, or too few for its flow table (ethtool -x), for AF_XDP sockets or XDP;
/// EBUSY; EOPNOTSUPP. Needs CAP_NET_ADMIN.
[[nodiscard]] int set_channels(unsigned ifindex, const ChannelChange& change);

} // namespace affinityd::netdev
