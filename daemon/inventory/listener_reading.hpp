// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"
#include "inventory/listener_filter.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace affinityd::inventory {

/// A socket that listens.
struct Listener {
    std::uint64_t inode = 0;
    std::uint16_t port = 0;
    friend auto operator<=>(const Listener&, const Listener&) = default;
};

struct Listeners {
    std::vector<Listener> sockets; ///< by inode
    bool is_truncated = false;     ///< there are more than `most`
};

/// Those of this network namespace on these ports, at most `most`, by sock_diag(7), and by /proc/net where
/// the kernel refuses that. Takes as long as there are sockets: not for the event loop. An Error, also
/// (ECANCELED) when `is_over`: it is not all.
[[nodiscard]] Result<Listeners> read_listeners(const host::Root& root, const PortRanges& ports,
                                               std::size_t most, const std::function<bool()>& is_over);

} // namespace affinityd::inventory
