// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/job.hpp"
#include "inventory/socket_table.hpp"

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace affinityd::app {

/// Ranges, both ends included.
using PortRanges = std::vector<std::pair<std::uint16_t, std::uint16_t>>;

/// Lists the sockets that listen on ports that policies ask for: the kernel tells nobody that a process has
/// begun to listen.
class ListenerGlance final : public Job {
  public:
    /// Inodes of sockets, ascending.
    using Listeners = std::vector<std::uint64_t>;
    /// `root` must outlive it. `seen` gets the listeners; it is not called where the list could not be read.
    ListenerGlance(const host::Root& root, PortRanges ports, std::function<void(Listeners)> seen)
        : table_(root, inventory::Wanted::listeners), ports_(std::move(ports)), seen_(std::move(seen)) {}
    bool step(const OutOfTime& out_of_time) override;

  private:
    inventory::SocketTable table_;
    PortRanges ports_;
    std::function<void(Listeners)> seen_;
};

} // namespace affinityd::app
