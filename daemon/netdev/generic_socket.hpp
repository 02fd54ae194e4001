// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

struct nl_sock;

namespace affinityd::netdev {

/// A generic netlink socket that asks for dumps. Not for events.
class GenericSocket {
  public:
    static Result<GenericSocket> open();

    /// The number of a family; nothing if this kernel has none of the name.
    [[nodiscard]] std::optional<int> family(const char* name);
    /// The attributes of every answer to a dump request without attributes. Empty also if the kernel refuses:
    /// the families asked here add to what sysfs says, and no driver has to support them.
    [[nodiscard]] std::vector<std::vector<std::byte>> dump(int family, std::uint8_t command,
                                                           std::uint8_t version);

  private:
    struct Release {
        void operator()(nl_sock* socket) const;
    };
    explicit GenericSocket(std::unique_ptr<nl_sock, Release> socket) : socket_(std::move(socket)) {}
    std::unique_ptr<nl_sock, Release> socket_;
};

} // namespace affinityd::netdev
