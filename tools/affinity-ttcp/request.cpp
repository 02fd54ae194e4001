// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/request.hpp"

#include "measure/program.hpp"

#include <array>
#include <cerrno>
#include <chrono>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace affinityd::ttcp {

namespace {

using Clock = std::chrono::steady_clock;

/// False if nothing has come when the time is over.
bool wait_for_more(int connection, Clock::time_point end) {
    while (true) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        if (left <= 0) return false;
        pollfd item{connection, POLLIN, 0};
        if (::poll(&item, 1, static_cast<int>(left)) > 0) return true;
    }
}

} // namespace

Result<std::vector<std::string>> read_request(int connection) {
    constexpr std::size_t most = 8192;
    const auto end = Clock::now() + std::chrono::seconds(10);
    std::string line;
    std::array<char, 1024> chunk{};
    while (!line.ends_with('\n')) {
        if (line.size() > most) return fail("the request is too long");
        if (!wait_for_more(connection, end)) return fail("no request has come");
        const auto got = ::read(connection, chunk.data(), chunk.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail("cannot read the request", {}, errno);
        if (got == 0) return fail("the request ends before its line does");
        line.append(chunk.data(), static_cast<std::size_t>(got));
    }
    return measure::from_line(line);
}

Result<void> end_with(int connection) {
    const int flags = ::fcntl(connection, F_GETFL);
    if (flags < 0 || ::fcntl(connection, F_SETOWN, ::getpid()) != 0 ||
        ::fcntl(connection, F_SETFL, flags | O_ASYNC) != 0)
        return fail("cannot watch the connection", {}, errno);
    // It may have gone before this process could be told.
    pollfd item{connection, POLLRDHUP, 0};
    if (::poll(&item, 1, 0) > 0) return fail("nobody waits for the report");
    return {};
}

} // namespace affinityd::ttcp
