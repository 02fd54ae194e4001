// SPDX-License-Identifier: Apache-2.0
#include "host/foreign_socket.hpp"

#include <array>
#include <cerrno>
#include <cstddef>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace affinityd::host {

namespace {

template <class Value>
std::optional<Value> option(int fd, int name) {
    Value value{};
    socklen_t size = sizeof value;
    if (::getsockopt(fd, SOL_SOCKET, name, &value, &size) != 0 || size != sizeof value) return std::nullopt;
    return value;
}

} // namespace

bool ForeignSocket::accepts() const {
    const auto protocol = option<int>(fd_.get(), SO_PROTOCOL);
    return protocol == IPPROTO_TCP && option<int>(fd_.get(), SO_ACCEPTCONN).value_or(0) != 0;
}

std::optional<std::uint64_t> ForeignSocket::cookie() const {
    return option<std::uint64_t>(fd_.get(), SO_COOKIE);
}

bool ForeignSocket::shares_port() const { return option<int>(fd_.get(), SO_REUSEPORT).value_or(0) != 0; }

std::optional<int> ForeignSocket::incoming_cpu() const { return option<int>(fd_.get(), SO_INCOMING_CPU); }

int ForeignSocket::set_incoming_cpu(int cpu) const {
    return ::setsockopt(fd_.get(), SOL_SOCKET, SO_INCOMING_CPU, &cpu, sizeof cpu) == 0 ? 0 : errno;
}

std::vector<std::uint8_t> ForeignSocket::bound_to() const {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&address);
    std::vector<std::uint8_t> found(bytes, bytes + std::min<std::size_t>(size, sizeof address));
    const auto interface = static_cast<unsigned>(option<int>(fd_.get(), SO_BINDTOIFINDEX).value_or(0));
    for (unsigned shift = 0; shift < 32; shift += 8)
        found.push_back(static_cast<std::uint8_t>(interface >> shift));
    return found;
}

std::uint16_t ForeignSocket::port() const {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
    if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
    if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
    return 0;
}

std::expected<ForeignFiles, int> ForeignFiles::open(int pid) {
    Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
    if (!fd) return std::unexpected(errno);
    return ForeignFiles(std::move(fd));
}

std::expected<ForeignSocket, int> ForeignFiles::socket(int number) const {
    Fd fd(static_cast<int>(::syscall(SYS_pidfd_getfd, fd_.get(), number, 0U)));
    if (!fd) return std::unexpected(errno);
    return ForeignSocket(std::move(fd));
}

} // namespace affinityd::host
