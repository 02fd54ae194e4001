// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/endpoint.hpp"

#include "affinity-ttcp/engine/address.hpp"

#include <array>
#include <cstring>
#include <memory>

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace affinityd::ttcp {

namespace {

std::string numeric(const sockaddr_storage& address, socklen_t size, bool port) {
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> service{};
    if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host.data(), host.size(),
                      service.data(), service.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return {};
    return port ? service.data() : host.data();
}

} // namespace

std::uint16_t port_of(int socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
    if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
    if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
    return 0;
}

std::string address_of(int socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
    return numeric(address, size, false);
}

std::string peer_of(int socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
    return Address{numeric(address, size, false), numeric(address, size, true)}.to_string();
}

bool is_local(int socket) {
    const std::string here = address_of(socket);
    if (here.empty()) return false;
    const std::string there = peer_of(socket);
    return there.starts_with("127.") || there.starts_with(Address{here, ""}.to_string());
}

bool has_link(int socket) {
    const std::string own = address_of(socket);
    ifaddrs* found = nullptr;
    if (own.empty() || ::getifaddrs(&found) != 0) return true; // unknown is no reason to give up
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(found, &::freeifaddrs);
    for (const auto* at = list.get(); at != nullptr; at = at->ifa_next) {
        if (at->ifa_addr == nullptr) continue;
        const bool v6 = at->ifa_addr->sa_family == AF_INET6;
        if (!v6 && at->ifa_addr->sa_family != AF_INET) continue;
        sockaddr_storage address{};
        const socklen_t size = v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
        std::memcpy(&address, at->ifa_addr, size);
        std::string text = numeric(address, size, false);
        if (own.starts_with("::ffff:") && !v6) text = "::ffff:" + text; // a socket that serves both families
        if (text == own) return (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_RUNNING) != 0;
    }
    return false;
}

} // namespace affinityd::ttcp
