// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"
#include "host/netlink.hpp"
#include "netdev/link_source.hpp"

namespace affinityd::netdev {

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
