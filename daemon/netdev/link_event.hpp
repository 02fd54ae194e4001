// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace affinityd::netdev {

/// Something about an interface changed that may have changed its interrupts, queues or addresses. Always
/// re-read: an event says that something changed, not what.
struct LinkEvent {
    enum class What {
        link,     ///< made, gone, up or down, renamed, enslaved, moved to another namespace
        address,  ///< an address came or went
        channels, ///< ethtool -L or -G: vectors were freed and requested again
    };
    What what = What::link;
    unsigned ifindex = 0;
    std::string name;  ///< "" where the message has none (addresses)
    bool up = false;   ///< link only: administratively up (IFF_UP)
    bool gone = false; ///< link: the interface left; address: the address did

    friend bool operator==(const LinkEvent&, const LinkEvent&) = default;
};

/// One or several rtnetlink messages as received. Messages of other kinds, and what is cut short, are
/// ignored.
[[nodiscard]] std::vector<LinkEvent> parse_route_messages(std::span<const std::byte> bytes);

/// The same for the ethtool family's notifications; `family` is its number, which the kernel assigns.
[[nodiscard]] std::vector<LinkEvent> parse_ethtool_messages(std::span<const std::byte> bytes, int family);

} // namespace affinityd::netdev
