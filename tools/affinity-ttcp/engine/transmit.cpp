// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/stream_parts.hpp"
#include "base/clock.hpp"

#include <cerrno>

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::ttcp {

namespace {

/// Waits until the peer has acknowledged everything: bytes in the local send buffer have not been transferred
/// yet. On a slow link that takes seconds.
void drain(int socket, const Load& load, StreamUse& use) {
    const double deadline = monotonic_seconds() + load.stall_seconds;
    int waiting = 0;
    while (::ioctl(socket, SIOCOUTQ, &waiting) == 0 && waiting > 0) {
        int code = 0;
        socklen_t size = sizeof code;
        ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &size);
        if (code == 0 && monotonic_seconds() > deadline)
            code = load.has_link != nullptr && !load.has_link(socket) ? ENETDOWN : ETIMEDOUT;
        if (code != 0) return fault(use, code);
        pollfd item{socket, 0, 0}; // returns early only when the connection breaks
        if (::poll(&item, 1, 1) > 0 && (item.revents & (POLLERR | POLLHUP)) != 0) ::usleep(1000);
    }
}

} // namespace

StreamUse transmit(int socket, const Load& load, Meter& meter) {
    StreamUse use;
    const Buffer buffer(load.buffer_bytes);
    if (buffer.data() == nullptr) {
        fault(use, End::local, ENOMEM);
        return use;
    }
    Patience patience(socket, SO_SNDTIMEO, load);
    meter.start();
    if (load.wait) load.wait();
    use.started = monotonic_seconds();
    const double deadline = load.seconds > 0 ? use.started + load.seconds : 0;
    while (!is_full(load, use) && (deadline == 0 || monotonic_seconds() < deadline)) {
        std::size_t length = next_length(load, use);
        if (load.input >= 0) {
            const auto got = ::read(load.input, buffer.data(), length);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) fault(use, End::local, errno);
            if (got <= 0) break;
            length = static_cast<std::size_t>(got);
        }
        if (const int code = send_all(socket, buffer.data(), length, patience, use.bytes); code != 0) {
            fault(use, code);
            break;
        }
        ++use.calls;
    }
    ::shutdown(socket, SHUT_WR);
    if (use.end == End::whole) drain(socket, load, use);
    return finish(use, socket, meter);
}

} // namespace affinityd::ttcp
