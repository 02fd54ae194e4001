// SPDX-License-Identifier: Apache-2.0
#include "host/local_socket.hpp"

#include <cerrno>

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::host {

Result<sockaddr_un> local_address(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        return fail("the path is too long for a socket", path, ENAMETOOLONG);
    path.copy(address.sun_path, path.size());
    return address;
}

Result<Fd> listen_at(const std::string& path, int type, mode_t umask) {
    const auto address = local_address(path);
    if (!address) return std::unexpected(address.error());
    Fd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return fail("cannot make a socket", path, errno);
    ::unlink(path.c_str()); // left by a daemon that was killed; a living one holds the instance lock
    const mode_t before = ::umask(umask); // from the first moment
    const int bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address);
    const int code = errno;
    ::umask(before);
    if (bound != 0) return fail("cannot bind the socket", path, code);
    if (::listen(socket.get(), SOMAXCONN) != 0) return fail("cannot listen", path, errno);
    return socket;
}

} // namespace affinityd::host
