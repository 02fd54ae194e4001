// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/stream.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <memory>
#include <vector>

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace affinityd::ttcp {

using measure::Outcome;

namespace {

Outcome kind_of(int code) {
    switch (code) {
    case EPIPE:
    case ECONNRESET:
    case ECONNABORTED:
        return Outcome::peer_gone;
    case EAGAIN:
    case ETIMEDOUT:
        return Outcome::timed_out;
    case ENETDOWN:
    case ENETUNREACH:
    case ENETRESET:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENODEV:
    case ENONET:
        return Outcome::link_lost;
    default:
        return Outcome::failed;
    }
}

std::optional<std::uint64_t> retransmits_of(int socket) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
    if (size < offsetof(tcp_info, tcpi_total_retrans) + sizeof info.tcpi_total_retrans) return std::nullopt;
    return info.tcpi_total_retrans;
}

/// Page-aligned, and filled with ttcp's pattern (printable characters in order, so that a packet dump can be
/// read), which touches it before the clock runs.
class Buffer {
  public:
    explicit Buffer(std::size_t size) : bytes_(size + page) {
        auto space = bytes_.size();
        void* begin = bytes_.data();
        data_ = static_cast<char*>(std::align(page, size, begin, space));
        for (std::size_t i = 0; i < size; ++i)
            data_[i] = static_cast<char>(' ' + i % 95);
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    [[nodiscard]] char* data() const { return data_; }

  private:
    static constexpr std::size_t page = 4096;
    std::vector<char> bytes_;
    char* data_;
};

/// Waits without progress, looking at the link once a second: TCP goes on trying when its interface has gone.
class Patience {
  public:
    /// `option`: SO_SNDTIMEO or SO_RCVTIMEO, set so that a call on the socket returns in time.
    Patience(int socket, int option, const Load& load) : socket_(socket), load_(load) {
        if (look_seconds_ <= 0) return;
        timeval limit{};
        limit.tv_sec = static_cast<time_t>(look_seconds_);
        limit.tv_usec = static_cast<suseconds_t>((look_seconds_ - static_cast<double>(limit.tv_sec)) * 1e6);
        ::setsockopt(socket, SOL_SOCKET, option, &limit, sizeof limit);
    }
    /// After a wait that brought no progress: 0 to go on, else the errno value to end with.
    [[nodiscard]] int wait_is_over() {
        if (load_.has_link != nullptr && !load_.has_link(socket_)) return ENETDOWN;
        waited_ += look_seconds_;
        return waited_ < load_.stall_seconds ? 0 : EAGAIN;
    }
    void progress() { waited_ = 0; }

  private:
    int socket_;
    const Load& load_;
    const double look_seconds_ =
        load_.has_link != nullptr ? std::min(1.0, load_.stall_seconds) : load_.stall_seconds;
    double waited_ = 0;
};

/// Tells a peer that sends a byte now and then from one that sends.
class Pace {
  public:
    explicit Pace(const Load& load) : load_(load) {}
    /// `bytes`: received in all, `now`: CLOCK_MONOTONIC seconds. False: too few in the last `stall_seconds`.
    [[nodiscard]] bool is_kept(std::uint64_t bytes, double now) {
        if (since_ > 0 && now - since_ < load_.stall_seconds) return true;
        const bool is_kept = since_ <= 0 || bytes - before_ >= load_.least_bytes;
        since_ = now;
        before_ = bytes;
        return is_kept;
    }

  private:
    const Load& load_;
    double since_ = 0;
    std::uint64_t before_ = 0;
};

/// Sends all of it: 0, or errno; `sent` counts what went out in both cases. Never raises SIGPIPE.
int send_all(int socket, const char* data, std::size_t length, Patience& patience, std::uint64_t& sent) {
    while (length > 0) {
        const auto got = ::send(socket, data, length, MSG_NOSIGNAL);
        if (got < 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN) return errno;
            if (const int code = patience.wait_is_over(); code != 0) return code;
            continue;
        }
        patience.progress();
        sent += static_cast<std::uint64_t>(got);
        data += got;
        length -= static_cast<std::size_t>(got);
    }
    return 0;
}

void fault(StreamUse& use, Outcome end, int code) {
    use.end = end;
    use.code = code;
}

/// The same with the Outcome that belongs to an errno value.
void fault(StreamUse& use, int code) { fault(use, kind_of(code), code); }

bool is_full(const Load& load, const StreamUse& use) {
    return (load.buffers != 0 && use.calls >= load.buffers) || (load.bytes != 0 && use.bytes >= load.bytes);
}

std::size_t next_length(const Load& load, const StreamUse& use) {
    if (load.bytes == 0) return load.buffer_bytes;
    return static_cast<std::size_t>(std::min<std::uint64_t>(load.buffer_bytes, load.bytes - use.bytes));
}

/// Stops the clock and the meter.
StreamUse& finish(StreamUse& use, int socket, Meter& meter) {
    use.ended = monotonic_seconds();
    use.usage = meter.stop();
    use.retransmits = retransmits_of(socket);
    return use;
}

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

std::uint64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

/// An end of an exchange: the socket with what bounds waiting at it.
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

StreamUse receive(int socket, const Load& load, Meter& meter) {
    StreamUse use;
    const Buffer buffer(load.buffer_bytes);
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
                fault(use, Outcome::failed, code);
                break;
            }
        }
        if (load.seconds > 0 && now >= use.started + load.seconds) break;
        if (load.least_bytes > 0 && !pace.is_kept(use.bytes, now)) {
            fault(use, Outcome::timed_out, ETIMEDOUT);
            break;
        }
    }
    return finish(use, socket, meter);
}

StreamUse transmit(int socket, const Load& load, Meter& meter) {
    StreamUse use;
    const Buffer buffer(load.buffer_bytes);
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
            if (got < 0) fault(use, Outcome::failed, errno);
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
    if (use.end == Outcome::done) drain(socket, load, use);
    return finish(use, socket, meter);
}

/// The first 2^(bits + 1) values have ranges of their own; then each power of two has 2^bits of equal width.
std::size_t LatencyCounts::range_of(std::uint64_t nanoseconds) {
    const std::uint64_t value = std::min(nanoseconds, (std::uint64_t{1} << most_bits) - 1);
    const auto width = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = width > bits + 1 ? width - bits - 1 : 0;
    return (static_cast<std::size_t>(shift) << bits) + static_cast<std::size_t>(value >> shift);
}

double LatencyCounts::low_end(std::size_t range) {
    const std::size_t power = range >> bits;
    if (power == 0) return static_cast<double>(range);
    const auto shift = static_cast<int>(power - 1);
    return std::ldexp(static_cast<double>(range - (static_cast<std::size_t>(shift) << bits)), shift);
}

void LatencyCounts::add(std::uint64_t nanoseconds) {
    ++counts_[range_of(nanoseconds)];
    ++total_;
}

LatencyCounts& LatencyCounts::operator+=(const LatencyCounts& other) {
    for (std::size_t i = 0; i < ranges; ++i)
        counts_[i] += other.counts_[i];
    total_ += other.total_;
    return *this;
}

std::optional<double> LatencyCounts::quantile(double part) const {
    if (total_ == 0) return std::nullopt;
    const double wanted = std::clamp(part, 0.0, 1.0) * static_cast<double>(total_);
    double before = 0;
    for (std::size_t i = 0; i < ranges; ++i) {
        const auto here = static_cast<double>(counts_[i]);
        if (here > 0 && before + here >= wanted)
            return low_end(i) + (low_end(i + 1) - low_end(i)) * (wanted - before) / here;
        before += here;
    }
    return std::nullopt;
}

StreamUse ask(int socket, const Exchange& exchange, Meter& meter, LatencyCounts& latencies) {
    StreamUse use;
    Side side(socket, exchange);
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
            fault(use, Outcome::timed_out, ETIMEDOUT);
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
