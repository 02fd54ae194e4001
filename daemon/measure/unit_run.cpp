// SPDX-License-Identifier: Apache-2.0
#include "measure/unit_run.hpp"

#include "measure/request.hpp"

#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>

namespace affinityd::measure {

Result<UnitRun> UnitRun::start(const std::string& socket, const std::vector<std::string>& options) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socket.size() >= sizeof address.sun_path)
        return fail("the path is too long for a socket", socket, ENAMETOOLONG);
    std::memcpy(address.sun_path, socket.data(), socket.size());
    host::Fd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!connection) return fail("cannot make a socket", socket, errno);
    if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        return fail("cannot ask for a measurement", socket, errno);
    const std::string line = to_line(options);
    const auto sent = ::send(connection.get(), line.data(), line.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(line.size()))
        return fail("cannot ask for a measurement", socket, sent < 0 ? errno : EMSGSIZE);
    return UnitRun(std::move(connection));
}

Run UnitRun::ended() {
    Run run{output_.take(), Outcome::done, {}};
    if (run.output.empty()) {
        run.outcome = Outcome::failed;
        run.fault = "ended without a report; journalctl -u 'affinity-measure@*' tells why";
    }
    return run;
}

} // namespace affinityd::measure
