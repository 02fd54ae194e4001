// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/stream_parts.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <cerrno>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>

namespace affinityd::ttcp {

namespace {

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

std::optional<std::uint64_t> retransmits_of(int socket) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
    if (size < offsetof(tcp_info, tcpi_total_retrans) + sizeof info.tcpi_total_retrans) return std::nullopt;
    return info.tcpi_total_retrans;
}

} // namespace

Buffer::Buffer(std::size_t size) : size_(size) {
    void* memory =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    data_ = memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
    // ttcp's pattern: printable characters in order, so that a packet dump can be read.
    for (std::size_t i = 0; data_ != nullptr && i < size; ++i)
        data_[i] = static_cast<char>(' ' + i % 95);
}

Buffer::~Buffer() {
    if (data_ != nullptr) ::munmap(data_, size_);
}

Patience::Patience(int socket, int option, const Load& load) : socket_(socket), load_(load) {
    const double seconds = look_seconds();
    if (seconds <= 0) return;
    timeval limit{};
    limit.tv_sec = static_cast<time_t>(seconds);
    limit.tv_usec = static_cast<suseconds_t>((seconds - static_cast<double>(limit.tv_sec)) * 1e6);
    ::setsockopt(socket, SOL_SOCKET, option, &limit, sizeof limit);
}

double Patience::look_seconds() const {
    return load_.has_link != nullptr ? std::min(1.0, load_.stall_seconds) : load_.stall_seconds;
}

int Patience::wait_is_over() {
    if (load_.has_link != nullptr && !load_.has_link(socket_)) return ENETDOWN;
    waited_ += look_seconds();
    return waited_ < load_.stall_seconds ? 0 : EAGAIN;
}

bool Pace::is_kept(std::uint64_t bytes, double now) {
    if (since_ > 0 && now - since_ < load_.stall_seconds) return true;
    const bool is_kept = since_ <= 0 || bytes - before_ >= load_.least_bytes;
    since_ = now;
    before_ = bytes;
    return is_kept;
}

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

void fault(StreamUse& use, End end, int code) {
    use.end = end;
    use.code = code;
}

void fault(StreamUse& use, int code) { fault(use, kind_of(code), code); }

bool is_full(const Load& load, const StreamUse& use) {
    return (load.buffers != 0 && use.calls >= load.buffers) || (load.bytes != 0 && use.bytes >= load.bytes);
}

std::size_t next_length(const Load& load, const StreamUse& use) {
    if (load.bytes == 0) return load.buffer_bytes;
    return static_cast<std::size_t>(std::min<std::uint64_t>(load.buffer_bytes, load.bytes - use.bytes));
}

StreamUse& finish(StreamUse& use, int socket, Meter& meter) {
    use.ended = monotonic_seconds();
    use.usage = meter.stop();
    use.retransmits = retransmits_of(socket);
    return use;
}

} // namespace affinityd::ttcp
