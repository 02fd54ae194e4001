// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

struct nl_msg;
struct nl_sock;
struct nlmsghdr;

namespace affinityd::host {

struct NetlinkRelease {
    void operator()(nl_sock* socket) const;
    void operator()(nl_msg* message) const;
};
using NetlinkSocket = std::unique_ptr<nl_sock, NetlinkRelease>;
using NetlinkMessage = std::unique_ptr<nl_msg, NetlinkRelease>;

/// A blocking socket for requests, connected to the kernel; `protocol` as in netlink(7): NETLINK_ROUTE,
/// NETLINK_GENERIC, NETLINK_SOCK_DIAG.
[[nodiscard]] Result<NetlinkSocket> open_netlink(int protocol);

/// An empty request of the type; `flags` NLM_F_DUMP for a list. An Error only without memory.
[[nodiscard]] Result<NetlinkMessage> make_request(int type, int flags);

/// A request whose answers depend on a table that may change while the kernel lists it.
struct NetlinkAnswers {
    std::function<void()> begin; ///< called before each attempt: forget what came so far
    std::function<void(const nlmsghdr&)> take;
};

/// How often a list that changed while it was read (NLM_F_DUMP_INTR) is asked for in all.
inline constexpr int most_attempts = 8;

/// Sends the request and waits for all answers. False: the kernel refuses this request (too old for it, or
/// the driver has no such thing). An Error: the socket does not work, or the list changed in every attempt
/// (EAGAIN); the answers are not to be used then. Documentation/userspace-api/netlink/intro.rst.
[[nodiscard]] Result<bool> ask(nl_sock& socket, nl_msg& request, const NetlinkAnswers& answers);

/// A run of netlink attributes, walked by libnl without trust: one that is cut short or claims more than
/// there is ends the run. Does not own the bytes, which must be aligned to four.
/// Documentation/userspace-api/netlink/intro.rst.
class Attributes {
  public:
    explicit Attributes(std::span<const std::byte> bytes) : bytes_(bytes) {}

    /// The value of the first attribute of a type, without header and padding.
    [[nodiscard]] std::optional<std::span<const std::byte>> find(int type) const;
    [[nodiscard]] std::optional<std::uint32_t> u32(int type) const; ///< no value if it has under four bytes
    [[nodiscard]] std::optional<std::string> text(int type) const;  ///< up to its NUL
    [[nodiscard]] Attributes nested(int type) const; ///< without attributes if there is none of the type

  private:
    std::span<const std::byte> bytes_;
};

} // namespace affinityd::host
