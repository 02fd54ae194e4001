// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <memory>
#include <string>
#include <string_view>

#include <netdb.h>

namespace affinityd::ttcp {

/// Where a peer is. Names are resolved when the address is used.
struct Address {
    std::string host;                            ///< a name or an address in numbers; "": every local address
    std::string port;                            ///< decimal or a service name
    [[nodiscard]] std::string to_string() const; ///< "host:port", "[::1]:port"
};

/// "host", "host:port", "[v6]:port", "v6" without port; `port` where the text has none.
[[nodiscard]] Result<Address> parse_address(std::string_view text, std::string_view port);

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// getaddrinfo(3) for a socket of this type (SOCK_STREAM, SOCK_DGRAM); waits for the resolver.
[[nodiscard]] Result<AddressList> look_up(const Address& address, int type, bool to_listen = false);

} // namespace affinityd::ttcp
