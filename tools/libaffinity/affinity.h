/* SPDX-License-Identifier: Apache-2.0 */
/* Lets a thread say where it belongs: libaffinity(3). The daemon affinityd places it, within what the policy
 * of its process allows. Where no daemon runs, nothing is done, and the program runs as it would without this
 * library.
 *
 * All functions may be called from any thread, also after fork(2). They keep no descriptor, memory or lock
 * from one call to the next, only the time of the last -EAGAIN and, in each thread, the slot that it has
 * joined. They raise no SIGPIPE, leave errno alone, and wait for 0.4 seconds at most, and that only while the
 * daemon does not answer. */
#ifndef AFFINITY_H
#define AFFINITY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AFFINITY_ARRIVALS "arrivals" /* the slot of affinity_serve_fd() in a policy's allow_join */

/* Where a thread is. Each text ends with a NUL byte. */
struct affinity_place {
    int cpu;          /* on which it runs at this moment */
    int joined;       /* 1: it is in `slot` */
    int serves;       /* 1: it is where the packets of its socket arrive */
    char policy[208]; /* the policy that its process is under; "": none, or no daemon runs */
    char slot[32];    /* "": it has joined none */
    char cpus[256]; /* those that it may run on, like "0-3,8"; ends with "..." where there is no room for all
                     */
};

/* Each returns 1 when it is done, 0 when no daemon runs and nothing was done, or a negative errno value:
 *   -EINVAL      the argument makes no sense
 *   -ESRCH       no policy wants the process
 *   -EACCES      its policy does not allow it (allow_join)
 *   -EAGAIN      too many requests, by this process, this user or all together, or the daemon is about to
 * end: later, after 10 ms at the earliest -EBUSY       it has joined, but cannot be placed now; `affinityctl
 * explain PID` says why -ECANCELED   the policy or the process was released by hand -EPERM       the thread
 * is none of the caller's -ETIMEDOUT   the daemon did not answer in time; it may do it yet -EPROTO      what
 * answered is no such daemon: its reply makes no sense others       the daemon is of another version, or the
 * system has no descriptor or memory left */

/* Puts the calling thread into a slot that its policy names: 1 to 31 letters, digits, and . _ -. The place
 * ends with the daemon: after a restart the next call of affinity_where() or affinity_serve_fd() joins again.
 */
int affinity_join(const char* slot);

/* Takes the calling thread out again, so that the policy places it by its name. Also 1 if it had joined
 * nothing. */
int affinity_leave(void);

/* Puts the calling thread on the slot of its policy that has the CPU where the packets of this socket arrive.
 *   -ENODATA     none has arrived yet
 *   -ENXIO       the thread has no slot of its own, or none of them has that CPU
 *   -EUSERS      too many others are there already
 *   -EBADF, -ENOTSOCK, ... as getsockopt(2) says of the descriptor */
int affinity_serve_fd(int fd);

/* Fills in where the calling thread is. Without a daemon (0), a policy or an answer: cpu and cpus. After a
 * reply that makes no sense (-EPROTO) all is 0. `size`: sizeof *place, so that later versions can add
 * members. */
int affinity_where(struct affinity_place* place, size_t size);

#ifdef __cplusplus
}
#endif

#endif
