// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/stream_parts.hpp"
#include "base/clock.hpp"

#include <cerrno>

#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::ttcp {

namespace {

int write_all(int file, const char* data, std::size_t length) {
    while (length > 0) {
        const auto written = ::write(file, data, length);
        if (written < 0 && errno != EINTR) return errno;
        if (written <= 0) continue;
        data += written;
        length -= static_cast<std::size_t>(written);
    }
    return 0;
}

} // namespace

StreamUse receive(int socket, const Load& load, Meter& meter) {
    StreamUse use;
    const Buffer buffer(load.buffer_bytes);
    if (buffer.data() == nullptr) {
        fault(use, End::local, ENOMEM);
        return use;
    }
    Patience patience(socket, SO_RCVTIMEO, load);
    Pace pace(load);
    const bool has_limits = load.seconds > 0 || load.least_bytes > 0;
    meter.start();
    if (load.wait) load.wait();
    use.started = monotonic_seconds();
    while (!is_full(load, use)) {
        const auto got = ::recv(socket, buffer.data(), next_length(load, use), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            const int code = errno == EAGAIN ? patience.wait_is_over() : errno;
            if (code == 0) continue;
            fault(use, code);
        }
        if (got <= 0) break;
        patience.progress();
        const double now = use.bytes == 0 || has_limits ? monotonic_seconds() : 0;
        if (use.bytes == 0) use.started = now; // waiting for the peer is not part of the transfer
        use.bytes += static_cast<std::uint64_t>(got);
        ++use.calls;
        if (load.output >= 0) {
            if (const int code = write_all(load.output, buffer.data(), static_cast<std::size_t>(got));
                code != 0) {
                fault(use, End::local, code);
                break;
            }
        }
        if (load.seconds > 0 && now >= use.started + load.seconds) break;
        if (load.least_bytes > 0 && !pace.is_kept(use.bytes, now)) {
            fault(use, End::stalled, ETIMEDOUT);
            break;
        }
    }
    return finish(use, socket, meter);
}

} // namespace affinityd::ttcp
