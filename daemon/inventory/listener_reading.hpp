// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"
#include "host/subordinate_ids.hpp"
#include "inventory/listener_filter.hpp"

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace affinityd::inventory {

/// A socket that listens.
struct Listener {
    std::uint64_t inode = 0;
    std::uint32_t user = 0; ///< all subordinate ids of a user stand for one
    std::uint16_t port = 0;
    friend auto operator<=>(const Listener&, const Listener&) = default;
};

/// Everybody may have as many sockets as he likes: what they cost, and how many count.
struct ListenerLimits {
    std::size_t in_all = 1U << 18; ///< at 16 bytes each
    std::size_t of_user = 4096;    ///< so that nobody takes the others' places; root may have more
    /// For one protocol and family. What a list of UDP sockets takes grows with the square of their number:
    /// the kernel keeps those of one port in one chain and begins at its end again for each datagram.
    std::chrono::nanoseconds cpu_time = std::chrono::milliseconds(200);
};

struct Listeners {
    /// A table that was not read to its end.
    struct Unread {
        std::string table;      ///< "tcp", "tcp6", "udp" or "udp6"
        std::uint32_t user = 0; ///< who has most of what was read of all
        friend bool operator==(const Unread&, const Unread&) = default;
    };
    std::vector<Listener> sockets;      ///< by inode
    std::vector<std::uint32_t> crowded; ///< users who have more than one may have, a few of them
    std::vector<Unread> unread;
    /// False: a socket that is not among `sockets` may listen all the same.
    [[nodiscard]] bool are_all() const { return crowded.empty() && unread.empty(); }
};

class ListenerReader {
  public:
    /// `root` must outlive it.
    ListenerReader(const host::Root& root, const ListenerLimits& limits) : root_(root), limits_(limits) {}

    /// Those of this network namespace on these ports, by sock_diag(7), and by /proc/net where the kernel
    /// refuses that. Where not all are known, those of the list `before` (may be null) that were not seen
    /// count on: a socket that still is one of a process's listens, but for very few programs. Not for the
    /// event loop. An Error, also (ECANCELED) when `is_over`.
    [[nodiscard]] Result<Listeners> read(const PortRanges& ports, const Listeners* before,
                                         const std::function<bool()>& is_over);

  private:
    const host::Root& root_;
    const ListenerLimits limits_;
    host::SubordinateIds persons_;
};

} // namespace affinityd::inventory
