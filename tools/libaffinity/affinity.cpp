// SPDX-License-Identifier: Apache-2.0
#include "libaffinity/affinity.h"

#include "libaffinity/ask.hpp"
#include "libaffinity/own_cpus.hpp"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

namespace {

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
    return libaffinity::ask(wish, slot, cpu, reply);
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
    const int status = libaffinity::ask(wish, "", cpu, reply);
    const bool is_forgotten = joined.slot[0] != '\0' && joined.tid == ::gettid() && reply.policy[0] != '\0' &&
                              (reply.flags & AFFINITYD_JOINED) == 0;
    if (!is_forgotten) return status;
    affinityd_join_reply again{};
    if (libaffinity::ask(AFFINITYD_WISH_JOIN, joined.slot, -1, again) != 1) return status;
    return libaffinity::ask(wish, "", cpu, reply);
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
    libaffinity::list_own_cpus(now.cpus, sizeof now.cpus);
    ::memcpy(place, &now, size < sizeof now ? size : sizeof now);
    return status;
}
