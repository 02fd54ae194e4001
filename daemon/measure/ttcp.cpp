// SPDX-License-Identifier: Apache-2.0
#include "measure/ttcp.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace affinityd::measure {

namespace {

/// Page-aligned and touched before the clock runs.
class Buffer {
  public:
    explicit Buffer(std::size_t size) : size_(size) {
        void* memory =
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        data_ = memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
        // ttcp's pattern: printable characters in a row, so that a dump on the way is readable.
        for (std::size_t i = 0; data_ != nullptr && i < size; ++i)
            data_[i] = static_cast<char>(' ' + i % 95);
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
        if (data_ != nullptr) ::munmap(data_, size_);
    }
    [[nodiscard]] char* data() const { return data_; }

  private:
    char* data_ = nullptr;
    std::size_t size_;
};

End kind_of(int code) {
    switch (code) {
    case EPIPE:
    case ECONNRESET:
    case ECONNABORTED:
        return End::peer;
    case EAGAIN:
    case ETIMEDOUT:
        return End::stalled;
    case ENETDOWN:
    case ENETUNREACH:
    case ENETRESET:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENODEV:
    case ENONET:
        return End::network;
    default:
        return End::local;
    }
}

void fault(StreamUse& use, End end, int code) {
    use.end = end;
    use.code = code;
}

void limit_waiting(int socket, int option, double seconds) {
    if (seconds <= 0) return;
    timeval limit{};
    limit.tv_sec = static_cast<time_t>(seconds);
    limit.tv_usec = static_cast<suseconds_t>((seconds - static_cast<double>(limit.tv_sec)) * 1e6);
    ::setsockopt(socket, SOL_SOCKET, option, &limit, sizeof limit);
}

/// Waiting without progress, a look at the link for each second of it: TCP itself goes on trying when its
/// interface has gone.
class Patience {
  public:
    Patience(int socket, const Load& load) : socket_(socket), load_(load) {}
    [[nodiscard]] double look_seconds() const {
        return load_.has_link != nullptr ? std::min(1.0, load_.stall_seconds) : load_.stall_seconds;
    }
    /// After a wait that brought nothing: 0 to go on, else the errno value to end with.
    [[nodiscard]] int wait_is_over() {
        if (load_.has_link != nullptr && !load_.has_link(socket_)) return ENETDOWN;
        waited_ += look_seconds();
        return waited_ < load_.stall_seconds ? 0 : EAGAIN;
    }
    void progress() { waited_ = 0; }

  private:
    int socket_;
    const Load& load_;
    double waited_ = 0;
};

std::optional<std::uint64_t> retransmits_of(int socket) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
    if (size < offsetof(tcp_info, tcpi_total_retrans) + sizeof info.tcpi_total_retrans) return std::nullopt;
    return info.tcpi_total_retrans;
}

bool is_full(const Load& load, const StreamUse& use) {
    return (load.buffers != 0 && use.calls >= load.buffers) || (load.bytes != 0 && use.bytes >= load.bytes);
}

std::size_t next_length(const Load& load, const StreamUse& use) {
    if (load.bytes == 0) return load.buffer_bytes;
    return static_cast<std::size_t>(std::min<std::uint64_t>(load.buffer_bytes, load.bytes - use.bytes));
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

/// 0, or errno; `sent` counts what went out either way.
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

/// Waits until the peer has acknowledged all: what lies in our send buffer has not been transferred. On a
/// slow link that is seconds' worth.
void drain(int socket, const Load& load, StreamUse& use) {
    const double deadline = monotonic_seconds() + load.stall_seconds;
    int waiting = 0;
    while (::ioctl(socket, SIOCOUTQ, &waiting) == 0 && waiting > 0) {
        int code = 0;
        socklen_t size = sizeof code;
        ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &size);
        if (code == 0 && monotonic_seconds() > deadline)
            code = load.has_link != nullptr && !load.has_link(socket) ? ENETDOWN : ETIMEDOUT;
        if (code != 0) return fault(use, kind_of(code), code);
        pollfd item{socket, 0, 0}; // wakes early only when the connection breaks
        if (::poll(&item, 1, 1) > 0 && (item.revents & (POLLERR | POLLHUP)) != 0) ::usleep(1000);
    }
}

StreamUse& finish(StreamUse& use, int socket, Meter& meter) {
    use.ended = monotonic_seconds();
    use.usage = meter.stop();
    use.retransmits = retransmits_of(socket);
    return use;
}

} // namespace

double monotonic_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

StreamUse transmit(int socket, const Load& load, Meter& meter) {
    StreamUse use;
    const Buffer buffer(load.buffer_bytes);
    if (buffer.data() == nullptr) {
        fault(use, End::local, ENOMEM);
        return use;
    }
    Patience patience(socket, load);
    limit_waiting(socket, SO_SNDTIMEO, patience.look_seconds());
    meter.start();
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
            fault(use, kind_of(code), code);
            break;
        }
        ++use.calls;
    }
    ::shutdown(socket, SHUT_WR);
    if (use.end == End::whole) drain(socket, load, use);
    return finish(use, socket, meter);
}

StreamUse receive(int socket, const Load& load, Meter& meter) {
    StreamUse use;
    const Buffer buffer(load.buffer_bytes);
    if (buffer.data() == nullptr) {
        fault(use, End::local, ENOMEM);
        return use;
    }
    Patience patience(socket, load);
    limit_waiting(socket, SO_RCVTIMEO, patience.look_seconds());
    meter.start();
    use.started = monotonic_seconds();
    while (!is_full(load, use)) {
        const auto got = ::recv(socket, buffer.data(), next_length(load, use), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            const int code = errno == EAGAIN ? patience.wait_is_over() : errno;
            if (code == 0) continue;
            fault(use, kind_of(code), code);
        }
        if (got <= 0) break;
        patience.progress();
        const double now = use.bytes == 0 || load.seconds > 0 ? monotonic_seconds() : 0;
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
    }
    return finish(use, socket, meter);
}

} // namespace affinityd::measure
