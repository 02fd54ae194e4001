// SPDX-License-Identifier: Apache-2.0
#include "libaffinity/ask.hpp"

#include <atomic>

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

namespace libaffinity {

namespace {

constexpr long to_connect_ms = 100, to_answer_ms = 300;
/// So long the daemon is not asked again by a process that it has refused to listen to: it would only do so
/// again.
constexpr long pause_ms = 10;
constexpr int greatest_errno = 4095; // MAX_ERRNO, include/linux/err.h
constexpr const char* usual_path = "/run/affinityd/" AFFINITYD_JOIN_SOCKET;

/// The address in AFFINITY_SOCKET (not for programs that run with another user's rights) or the usual one.
bool find_address(sockaddr_un& address) {
    const char* path = ::secure_getenv("AFFINITY_SOCKET");
    if (path == nullptr || *path == '\0') path = usual_path;
    const size_t size = ::strlen(path) + 1;
    if (size > sizeof address.sun_path) return false;
    ::memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    ::memcpy(address.sun_path, path, size);
    return true;
}

long now_ms() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

// No lock: a fork in any thread may copy it.
std::atomic<long> refused_until_ms{0};
static_assert(std::atomic<long>::is_always_lock_free);

bool is_in_pause() {
    const long left = refused_until_ms.load(std::memory_order_relaxed) - now_ms();
    return left > 0 && left <= pause_ms + 1; // what is further ahead is of another time namespace
}

void begin_pause() {
    // The present millisecond has begun already.
    refused_until_ms.store(now_ms() + pause_ms + 1, std::memory_order_relaxed);
}

/// True for what it is like where no daemon runs, or where its folder is out of reach.
bool means_no_daemon(int code) {
    return code == ENOENT || code == ECONNREFUSED || code == EACCES || code == ENOTDIR || code == EPERM ||
           code == EPROTOTYPE || code == ELOOP || code == ENAMETOOLONG;
}

/// 0, or an errno value. Waits while the daemon has not taken in many others who connect.
int connect_to(int fd, const sockaddr_un& address) {
    const long end = now_ms() + to_connect_ms;
    for (long left = to_connect_ms; left > 0; left = end - now_ms()) {
        const timeval limit{0, left * 1000};
        if (::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0) return errno;
        if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return 0;
        if (errno != EINTR) return errno;
    }
    return EAGAIN;
}

/// Whatever runs there says what a daemon may say: texts that end, and a status as in affinity.h. A later
/// daemon may know more flags.
bool makes_sense(const affinityd_join_reply& reply) {
    return reply.magic == AFFINITYD_JOIN_MAGIC && reply.status <= 1 && reply.status >= -greatest_errno &&
           ::memchr(reply.policy, '\0', sizeof reply.policy) != nullptr &&
           ::memchr(reply.slot, '\0', sizeof reply.slot) != nullptr;
}

/// 0, or an errno value.
int await_reply(int fd, affinityd_join_reply& reply) {
    const long end = now_ms() + to_answer_ms;
    for (;;) {
        const auto got = ::recv(fd, &reply, sizeof reply, MSG_DONTWAIT | MSG_TRUNC);
        if (got == static_cast<ssize_t>(sizeof reply)) return makes_sense(reply) ? 0 : EPROTO;
        if (got > 0) return EPROTO;
        if (got == 0) return EAGAIN; // it was closed without a word: too many others
        if (errno == ECONNRESET) return EAGAIN;
        if (errno != EAGAIN && errno != EINTR) return errno;
        const long left = end - now_ms();
        if (left <= 0) return ETIMEDOUT;
        pollfd readable{fd, POLLIN, 0};
        ::poll(&readable, 1, static_cast<int>(left));
    }
}

/// A status as in affinity.h.
int exchange(int fd, const affinityd_join_request& request, affinityd_join_reply& reply) {
    // It was closed at once: too many others, or the daemon is about to end.
    if (::send(fd, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return errno == EPIPE || errno == ECONNRESET ? -EAGAIN : -errno;
    if (const int code = await_reply(fd, reply); code != 0) {
        reply = {};
        return -code;
    }
    return reply.status;
}

} // namespace

int ask(affinityd_join_wish wish, const char* slot, int cpu, affinityd_join_reply& reply) {
    affinityd_join_request request{};
    const size_t size = ::strnlen(slot, sizeof request.slot);
    if (size == sizeof request.slot) return -EINVAL;
    sockaddr_un address;
    if (!find_address(address)) return 0;
    if (is_in_pause()) return -EAGAIN;

    request.magic = AFFINITYD_JOIN_MAGIC;
    request.version = AFFINITYD_JOIN_VERSION;
    request.wish = static_cast<uint16_t>(wish);
    request.pid = ::getpid();
    request.tid = static_cast<int32_t>(::syscall(SYS_gettid));
    request.cpu = cpu;
    ::memcpy(request.slot, slot, size);
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    const int code = connect_to(fd, address);
    const int status = code == 0 ? exchange(fd, request, reply) : means_no_daemon(code) ? 0 : -code;
    ::close(fd);
    if (code == 0 && status == -EAGAIN) begin_pause(); // who waited in vain to connect has paused already
    return status;
}

} // namespace libaffinity
