// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/address.hpp"

#include <algorithm>
#include <cerrno>

namespace affinityd::ttcp {

namespace {

constexpr std::size_t most_host = 253,
                      most_port = 32; // a host name by RFC 1035; a service name and some room

} // namespace

std::string Address::to_string() const {
    return (host.find(':') == std::string::npos ? host : '[' + host + ']') + ':' + port;
}

Result<Address> parse_address(std::string_view text, std::string_view port) {
    Address address{std::string(text), std::string(port)};
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        const bool has_port = end != std::string_view::npos && end + 1 < text.size();
        if (end == std::string_view::npos || (has_port && text[end + 1] != ':'))
            return fail("expected [address]:port", std::string(text), EINVAL);
        address.host = text.substr(1, end - 1);
        if (has_port) address.port = text.substr(end + 2);
    } else if (std::count(text.begin(), text.end(), ':') == 1) {
        const auto colon = text.find(':');
        address.host = text.substr(0, colon);
        address.port = text.substr(colon + 1);
    }
    if (address.host.empty() || address.port.empty() || address.host.size() > most_host ||
        address.port.size() > most_port || address.host.find('\0') != std::string::npos)
        return fail("expected host:port", std::string(text), EINVAL);
    return address;
}

Result<AddressList> look_up(const Address& address, int type, bool to_listen) {
    addrinfo hints{};
    hints.ai_socktype = type;
    hints.ai_flags = to_listen ? AI_PASSIVE : 0;
    addrinfo* found = nullptr;
    const int status = ::getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(),
                                     address.port.c_str(), &hints, &found);
    if (status != 0)
        return fail(std::string("address not known: ") + ::gai_strerror(status), address.to_string(),
                    EADDRNOTAVAIL);
    return AddressList(found, &::freeaddrinfo);
}

} // namespace affinityd::ttcp
