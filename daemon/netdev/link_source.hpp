// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "netdev/link_event.hpp"

#include <vector>

namespace affinityd::netdev {

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

} // namespace affinityd::netdev
