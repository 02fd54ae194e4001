// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/locality/foreign_socket.hpp"

#include <cerrno>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace affinityctl {

using affinityd::Result;

Result<ForeignSocket> ForeignSocket::open(const affinityd::host::Fd& process, int number) {
    affinityd::host::Fd socket(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0)));
    if (!socket) return affinityd::fail("cannot get the socket", {}, errno);
    ForeignSocket found(std::move(socket));
    if (!found.option(SO_TYPE)) return affinityd::fail("no socket", {}, ENOTSOCK);
    return found;
}

std::optional<int> ForeignSocket::option(int name) const {
    int value = 0;
    socklen_t size = sizeof(value);
    if (::getsockopt(socket_.get(), SOL_SOCKET, name, &value, &size) != 0) return std::nullopt;
    return value;
}

std::optional<unsigned> ForeignSocket::incoming_cpu() const {
    const auto cpu = option(SO_INCOMING_CPU);
    return cpu && *cpu >= 0 ? std::optional(static_cast<unsigned>(*cpu)) : std::nullopt;
}

unsigned ForeignSocket::napi_id() const {
    return static_cast<unsigned>(option(SO_INCOMING_NAPI_ID).value_or(0));
}

bool ForeignSocket::is_listening() const { return option(SO_ACCEPTCONN).value_or(0) != 0; }

std::optional<std::chrono::milliseconds> ForeignSocket::silence() const {
    tcp_info info{};
    socklen_t size = sizeof(info);
    if (option(SO_PROTOCOL) != IPPROTO_TCP) return std::nullopt;
    if (::getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
    if (info.tcpi_state != TCP_ESTABLISHED) return std::nullopt;
    return std::chrono::milliseconds(info.tcpi_last_data_recv);
}

} // namespace affinityctl
