// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/exchange.hpp"

#include "affinity-ttcp/engine/stream_parts.hpp"
#include "base/clock.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>

#include <sys/socket.h>

namespace affinityd::ttcp {

namespace {

std::uint64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

/// One end of an exchange: the socket with what bounds waiting at it.
class Side {
  public:
    Side(int socket, const Exchange& exchange)
        : socket_(socket), buffer_(std::max(exchange.request_bytes, exchange.response_bytes)) {
        load_.stall_seconds = exchange.has_timer ? exchange.stall_seconds : 0;
        sending_.emplace(socket, SO_SNDTIMEO, load_);
        receiving_.emplace(socket, SO_RCVTIMEO, load_);
    }
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;
    [[nodiscard]] bool has_memory() const { return buffer_.data() != nullptr; }
    /// 0, or errno.
    [[nodiscard]] int send(std::size_t length) {
        std::uint64_t sent = 0;
        return send_all(socket_, buffer_.data(), length, *sending_, sent);
    }
    /// 0, or errno; `got` says how far it came. With 0 it is `length`, or less where the peer shut its side.
    [[nodiscard]] int receive(std::size_t length, std::size_t& got) {
        got = 0;
        while (got < length) {
            const auto some = ::recv(socket_, buffer_.data(), length - got, 0);
            if (some == 0) return 0;
            if (some > 0) {
                receiving_->progress();
                got += static_cast<std::size_t>(some);
                continue;
            }
            if (errno == EINTR) continue;
            const int code = errno == EAGAIN ? receiving_->wait_is_over() : errno;
            if (code != 0) return code;
        }
        return 0;
    }

  private:
    int socket_;
    Load load_;
    Buffer buffer_;
    std::optional<Patience> sending_, receiving_;
};

void count(StreamUse& use, const Exchange& exchange) {
    use.bytes += exchange.request_bytes + exchange.response_bytes;
    ++use.calls;
}

} // namespace

StreamUse ask(int socket, const Exchange& exchange, Meter& meter, LatencyCounts& latencies) {
    StreamUse use;
    Side side(socket, exchange);
    if (!side.has_memory()) {
        fault(use, End::local, ENOMEM);
        return use;
    }
    meter.start();
    if (exchange.wait) exchange.wait();
    use.started = monotonic_seconds();
    const auto stall = static_cast<std::uint64_t>(exchange.stall_seconds * 1e9);
    const std::uint64_t end = now_ns() + static_cast<std::uint64_t>(exchange.seconds * 1e9);
    for (std::uint64_t asked = now_ns(); asked < end;) {
        std::size_t got = 0;
        int code = side.send(exchange.request_bytes);
        if (code == 0) code = side.receive(exchange.response_bytes, got);
        if (code == 0 && got < exchange.response_bytes) code = ECONNRESET; // the peer shut its side
        if (code != 0) {
            fault(use, code);
            break;
        }
        const std::uint64_t answered = now_ns();
        if (stall > 0 && answered - asked > stall) {
            fault(use, End::stalled, ETIMEDOUT);
            break;
        }
        latencies.add(answered - asked);
        count(use, exchange);
        asked = answered;
    }
    ::shutdown(socket, SHUT_WR);
    return finish(use, socket, meter);
}

StreamUse answer(int socket, const Exchange& exchange, Meter& meter) {
    StreamUse use;
    Side side(socket, exchange);
    if (!side.has_memory()) {
        fault(use, End::local, ENOMEM);
        return use;
    }
    meter.start();
    if (exchange.wait) exchange.wait();
    use.started = monotonic_seconds();
    while (true) {
        std::size_t got = 0;
        int code = side.receive(exchange.request_bytes, got);
        if (code == 0 && got == 0) break; // between two requests: the peer is through
        if (code == 0 && got < exchange.request_bytes) code = ECONNRESET;
        if (use.calls == 0) use.started = monotonic_seconds(); // waiting for the peer is not part of it
        if (code == 0) code = side.send(exchange.response_bytes);
        if (code != 0) {
            fault(use, code);
            break;
        }
        count(use, exchange);
    }
    return finish(use, socket, meter);
}

} // namespace affinityd::ttcp
