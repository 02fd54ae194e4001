// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/socket.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace affinityd::ttcp {

namespace {

constexpr std::size_t most_host = 253,
                      most_port = 32; // a host name by RFC 1035; a service name and some room

std::string numeric(const sockaddr_storage& address, socklen_t size, bool port) {
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> service{};
    if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host.data(), host.size(),
                      service.data(), service.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return {};
    return port ? service.data() : host.data();
}

void set_option(int socket, int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof value);
}

void apply(int socket, const SocketOptions& options) {
    if (options.nodelay) set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    if (options.buffer_bytes > 0) {
        set_option(socket, SOL_SOCKET, SO_SNDBUF, options.buffer_bytes);
        set_option(socket, SOL_SOCKET, SO_RCVBUF, options.buffer_bytes);
    }
}

int bind_source(int socket, const SocketOptions& options, int family) {
    if (options.source.empty()) return 0;
    const auto infos = look_up({options.source, "0"}, SOCK_STREAM);
    if (!infos) return EADDRNOTAVAIL;
    for (const auto* at = infos->get(); at != nullptr; at = at->ai_next) {
        if (at->ai_family != family) continue;
        return ::bind(socket, at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
    }
    return EADDRNOTAVAIL;
}

/// Waits for `events`; 0, ETIMEDOUT or another errno. until 0: without limit.
int wait_for(int socket, short events, double until) {
    while (true) {
        int wait = -1;
        if (until > 0) {
            const double left = until - monotonic_seconds();
            if (left <= 0) return ETIMEDOUT;
            wait = static_cast<int>(std::min(left * 1000 + 1, 1e9));
        }
        pollfd item{socket, events, 0};
        const int ready = ::poll(&item, 1, wait);
        if (ready > 0) return 0;
        if (ready < 0 && errno != EINTR) return errno;
    }
}

int connect_until(int socket, const addrinfo& info, double until) {
    if (::connect(socket, info.ai_addr, info.ai_addrlen) == 0) return 0;
    if (errno != EINPROGRESS && errno != EINTR) return errno;
    if (const int code = wait_for(socket, POLLOUT, until); code != 0) return code;
    int code = 0;
    socklen_t size = sizeof code;
    return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : errno;
}

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

Result<host::Fd> connect_to(const Address& address, const SocketOptions& options, double seconds) {
    const auto infos = look_up(address, SOCK_STREAM);
    if (!infos) return std::unexpected(infos.error());
    const double until = monotonic_seconds() + seconds;
    int code = EADDRNOTAVAIL;
    for (const auto* at = infos->get(); at != nullptr; at = at->ai_next) {
        host::Fd socket(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (!socket) {
            code = errno;
            continue;
        }
        apply(socket.get(), options);
        code = bind_source(socket.get(), options, at->ai_family);
        if (code == 0) code = connect_until(socket.get(), *at, until);
        if (code != 0) continue;
        ::fcntl(socket.get(), F_SETFL, 0);
        return socket;
    }
    return fail("cannot connect", address.to_string(), code);
}

Result<host::Fd> listen_at(const Address& address, const SocketOptions& options, unsigned backlog) {
    const auto infos = look_up(address, SOCK_STREAM, true);
    if (!infos) return std::unexpected(infos.error());
    int code = EADDRNOTAVAIL;
    // IPv6 first: for every address, one socket then serves both families.
    for (const bool v6 : {true, false}) {
        for (const auto* at = infos->get(); at != nullptr; at = at->ai_next) {
            if ((at->ai_family == AF_INET6) != v6) continue;
            host::Fd socket(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
            if (!socket) {
                code = errno;
                continue;
            }
            set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
            if (v6 && address.host.empty()) set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
            apply(socket.get(), options);
            if (::bind(socket.get(), at->ai_addr, at->ai_addrlen) == 0 &&
                ::listen(socket.get(), static_cast<int>(backlog)) == 0)
                return socket;
            code = errno;
        }
    }
    return fail("cannot listen", address.to_string(), code);
}

Result<host::Fd> accept_from(int listener, double seconds) {
    const double until = seconds > 0 ? monotonic_seconds() + seconds : 0;
    while (true) {
        host::Fd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
        if (socket) return socket;
        // A connection may have died while it waited, which does not harm the listener; see accept(2).
        if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
        if (errno != EAGAIN) return fail("cannot accept a connection", {}, errno);
        if (const int code = wait_for(listener, POLLIN, until); code != 0)
            return fail("no connection came", {}, code);
    }
}

} // namespace affinityd::ttcp
