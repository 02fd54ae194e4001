// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/socket.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace affinityd::ttcp {

namespace {

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
