// SPDX-License-Identifier: Apache-2.0
#include "libaffinity/affinity.h"

#include "control/join_wire.h"

#include <atomic>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

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
    // The daemon closed the connection at once: too many others, or the daemon is about to end.
    if (::send(fd, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return errno == EPIPE || errno == ECONNRESET ? -EAGAIN : -errno;
    if (const int code = await_reply(fd, reply); code != 0) {
        reply = {};
        return -code;
    }
    return reply.status;
}

/// Sends one request over a connection of its own and waits for the reply, 0.4 s at most. As the functions of
/// affinity.h: 1, 0 (there is no daemon), or a negative errno value. `reply` is what the daemon has answered,
/// and all 0 where it has not, or where its answer makes no sense (-EPROTO). No exceptions, no state, nothing
/// but libc.
int send_wish(affinityd_join_wish wish, const char* slot, int cpu, affinityd_join_reply& reply) {
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

constexpr unsigned bits = 8 * sizeof(unsigned long);
constexpr unsigned most_cpus = 8192; // of the kernels with most (NR_CPUS, arch/x86/Kconfig)

bool has(const unsigned long* mask, unsigned cpu) {
    return cpu < most_cpus && ((mask[cpu / bits] >> (cpu % bits)) & 1) != 0;
}

/// The CPUs that the calling thread may run on, like "0-3,8", with a NUL byte; what does not fit is replaced
/// by "...". `size`: at least 16. "": the kernel does not say.
void list_own_cpus(char* into, size_t size) {
    unsigned long mask[most_cpus / bits] = {};
    size_t used = 0;
    into[0] = '\0';
    // The call itself, since that of libc wants to know beforehand how large the mask is.
    if (::syscall(SYS_sched_getaffinity, 0, sizeof mask, mask) < 0) return;
    for (unsigned cpu = 0; cpu < most_cpus; ++cpu) {
        if (!has(mask, cpu)) continue;
        const unsigned first = cpu;
        while (has(mask, cpu + 1))
            ++cpu;
        char part[32];
        const int length = first == cpu
                               ? ::snprintf(part, sizeof part, "%s%u", used > 0 ? "," : "", cpu)
                               : ::snprintf(part, sizeof part, "%s%u-%u", used > 0 ? "," : "", first, cpu);
        if (length < 0) return;
        const auto more = static_cast<size_t>(length);
        if (used + more + sizeof "..." > size) {
            ::memcpy(into + used, "...", sizeof "...");
            return;
        }
        ::memcpy(into + used, part, more + 1);
        used += more;
    }
}

/// A thread that is canceled in the middle would leave a descriptor behind, and errno is the caller's.
class Undisturbed {
  public:
    Undisturbed() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    Undisturbed(const Undisturbed&) = delete;
    Undisturbed& operator=(const Undisturbed&) = delete;
    ~Undisturbed() {
        int ignored = 0;
        ::pthread_setcancelstate(before_, &ignored);
        errno = code_;
    }

  private:
    int code_ = errno;
    int before_ = PTHREAD_CANCEL_ENABLE;
};

int ask(affinityd_join_wish wish, const char* slot = "", int cpu = -1) {
    const Undisturbed undisturbed;
    affinityd_join_reply reply{};
    return send_wish(wish, slot, cpu, reply);
}

bool is_slot_name(const char* text) {
    if (text == nullptr || *text == '\0') return false;
    constexpr const char* good = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const size_t size = ::strnlen(text, sizeof(affinityd_join_request::slot));
    return size < sizeof(affinityd_join_request::slot) && ::strspn(text, good) == size;
}

/// The slot that the thread has joined, for a daemon that does not know it: the next one. A forked child has
/// the thread's memory, but has joined nothing.
struct Joined {
    pid_t tid;
    char slot[sizeof(affinityd_join_request::slot)];
};
thread_local Joined joined;

int note_join(int status, const char* slot) {
    if (status != 1 && status != -EBUSY) return status;
    joined.tid = ::gettid();
    ::strcpy(joined.slot, slot);
    return status;
}

/// Asks; where the daemon has forgotten what the thread has joined, as it ends with a daemon, it joins anew
/// before.
int ask_as_joined(affinityd_join_wish wish, int cpu, affinityd_join_reply& reply) {
    const int status = send_wish(wish, "", cpu, reply);
    const bool is_forgotten = joined.slot[0] != '\0' && joined.tid == ::gettid() && reply.policy[0] != '\0' &&
                              (reply.flags & AFFINITYD_JOINED) == 0;
    if (!is_forgotten) return status;
    affinityd_join_reply again{};
    if (send_wish(AFFINITYD_WISH_JOIN, joined.slot, -1, again) != 1) return status;
    return send_wish(wish, "", cpu, reply);
}

} // namespace

int affinity_join(const char* slot) {
    if (!is_slot_name(slot) || ::strcmp(slot, AFFINITY_ARRIVALS) == 0) return -EINVAL;
    return note_join(ask(AFFINITYD_WISH_JOIN, slot), slot);
}

int affinity_leave(void) {
    joined.slot[0] = '\0';
    return ask(AFFINITYD_WISH_LEAVE);
}

int affinity_serve_fd(int fd) {
    int cpu = -1;
    {
        const Undisturbed undisturbed;
        socklen_t size = sizeof cpu;
        if (::getsockopt(fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, &size) != 0) return -errno;
    }
    if (cpu < 0) return -ENODATA;
    const Undisturbed undisturbed;
    affinityd_join_reply reply{};
    return ask_as_joined(AFFINITYD_WISH_SERVE, cpu, reply);
}

int affinity_where(affinity_place* place, size_t size) {
    if (place == nullptr || size == 0) return -EINVAL;
    const Undisturbed undisturbed;
    affinityd_join_reply reply{};
    const int status = ask_as_joined(AFFINITYD_WISH_WHERE, -1, reply);
    // A caller of a later version knows members that are 0 here.
    ::memset(place, 0, size);
    if (status == -EPROTO) return status;
    affinity_place now{};
    now.cpu = ::sched_getcpu();
    now.joined = (reply.flags & AFFINITYD_JOINED) != 0 ? 1 : 0;
    now.serves = (reply.flags & AFFINITYD_SERVES) != 0 ? 1 : 0;
    static_assert(sizeof now.policy >= sizeof reply.policy && sizeof now.slot >= sizeof reply.slot);
    ::memcpy(now.policy, reply.policy, sizeof reply.policy);
    ::memcpy(now.slot, reply.slot, sizeof reply.slot);
    list_own_cpus(now.cpus, sizeof now.cpus);
    ::memcpy(place, &now, size < sizeof now ? size : sizeof now);
    return status;
}
