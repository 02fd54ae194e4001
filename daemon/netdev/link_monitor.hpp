// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"
#include "host/netlink.hpp"

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

/// Where changes of interfaces are heard of: the kernel, or a test's own.
class LinkSource {
  public:
    virtual ~LinkSource() = default;
    /// Readable when there is something to drain; for a loop to watch. Stays the source's.
    [[nodiscard]] virtual int fd() const = 0;

    struct Drained {
        std::vector<LinkEvent> events; ///< oldest first
        bool lost = false;             ///< the kernel dropped messages: read everything again
    };
    /// All that has arrived; never waits. An Error only if a socket is broken.
    [[nodiscard]] virtual Result<Drained> drain() = 0;
};

/// Owns the subscriptions to links, addresses and channel changes of the network namespace that it was opened
/// in. Subscribe, then read the interfaces: what happens between is then in the queue.
class LinkMonitor final : public LinkSource {
  public:
    /// `buffer`: bytes of each socket's receive queue.
    static Result<LinkMonitor> open(int buffer = 1 << 20);

    [[nodiscard]] int fd() const override { return waiter_.get(); }
    [[nodiscard]] Result<Drained> drain() override;

  private:
    LinkMonitor(host::NetlinkSocket route, host::NetlinkSocket generic, int family, host::Fd waiter)
        : route_(std::move(route)), generic_(std::move(generic)), family_(family),
          waiter_(std::move(waiter)) {}

    host::NetlinkSocket route_;
    host::NetlinkSocket generic_; ///< none on kernels without ethtool netlink (before 5.6)
    int family_ = -1;
    host::Fd waiter_; ///< an epoll descriptor over both sockets
};

} // namespace affinityd::netdev
