// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"
#include "host/netlink.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::netdev {

/// An interface was made, went, went up or down, was renamed or enslaved, moved to another namespace, got or
/// lost an address, or has other channels or rings (ethtool -L and -G free vectors and request them again).
/// Always re-read: an event says that something changed, not what.
struct LinkEvent {
    unsigned ifindex = 0;
    std::string name; ///< "" where the message has none (addresses)

    friend bool operator==(const LinkEvent&, const LinkEvent&) = default;
};

/// Reads rtnetlink messages as received. Ignores messages of other kinds, and what is cut short.
[[nodiscard]] std::vector<LinkEvent> parse_route_messages(std::span<const std::byte> bytes);

/// The same for the ethtool family's notifications; `family` is its number, which the kernel assigns.
[[nodiscard]] std::vector<LinkEvent> parse_ethtool_messages(std::span<const std::byte> bytes, int family);

/// True if a uevent of the kernel ("online@/devices/system/cpu/cpu3", then KEY=VALUE, each ended by a NUL) is
/// about a CPU. Accepts any bytes. Source: lib/kobject_uevent.c.
[[nodiscard]] bool is_cpu_uevent(std::string_view message);

/// Owns the subscriptions to links, addresses and channel changes of the network namespace that it was opened
/// in, and to CPUs that go and come: virtio_net, for one, resets all of its queues then. Subscribe, then read
/// the machine: what happens between is then in the queue.
class LinkMonitor {
  public:
    /// `buffer`: bytes of the receive queue of each socket for interfaces.
    static Result<LinkMonitor> open(int buffer = 1 << 20);

    /// Readable when there is something to drain; for a loop to watch. Stays the monitor's.
    [[nodiscard]] int fd() const { return waiter_.get(); }

    struct Drained {
        std::vector<LinkEvent> events; ///< oldest first
        bool lost = false;             ///< the kernel dropped some: read all interfaces again
        bool cpus = false;             ///< a CPU went or came, or messages that may have said so were lost
    };
    /// All that has arrived; never waits. An Error only if a socket is broken.
    [[nodiscard]] Result<Drained> drain();

  private:
    LinkMonitor() = default;
    [[nodiscard]] Result<void> subscribe(int buffer);
    [[nodiscard]] Result<void> watch(nl_sock& socket) const;

    host::NetlinkSocket route_;
    host::NetlinkSocket generic_; ///< none on kernels without ethtool netlink (before 5.6)
    host::NetlinkSocket uevents_; ///< the kernel's own, which come with and without udev
    int family_ = -1;             ///< of ethtool
    host::Fd waiter_;             ///< an epoll descriptor over the sockets
};

} // namespace affinityd::netdev
