// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/netlink.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace affinityd::netdev {

/// A generic netlink socket for requests. Not for events.
class GenericSocket {
  public:
    static Result<GenericSocket> open();

    /// The number of a family; no value if this kernel has none of the name.
    [[nodiscard]] Result<std::optional<int>> family(const char* name);

    struct Request {
        int family = 0;
        std::uint8_t command = 0;
        std::uint8_t version = 0;
        bool dump = true;                       ///< all there are; otherwise the one that `fill` names
        std::function<void(nl_msg&)> fill = {}; ///< adds attributes
    };
    using Answer = std::vector<std::byte>; ///< attributes after the generic header
    /// The answers to a request; none if the kernel refuses it: the families asked here add to what sysfs
    /// says, and no driver has to support them. A list that changes while it is read is read again; if it
    /// never holds still, or the socket does not work, an Error. `code`, if given: the errno with which the
    /// kernel refused, or ended a list early; 0: neither.
    [[nodiscard]] Result<std::vector<Answer>> ask(const Request& request, int* code = nullptr);

  private:
    explicit GenericSocket(host::NetlinkSocket socket) : socket_(std::move(socket)) {}
    [[nodiscard]] static Result<host::NetlinkMessage> make(const Request& request);
    host::NetlinkSocket socket_;
};

} // namespace affinityd::netdev
