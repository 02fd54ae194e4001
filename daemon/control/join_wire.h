/* SPDX-License-Identifier: Apache-2.0 */
/* The talk of libaffinity and the daemon over the socket `join`, AF_UNIX and SOCK_SEQPACKET: one
 * request, one reply, each one packet in the machine's byte order; then the connection ends. The
 * daemon believes the kernel alone about the one who asks. C and C++. */
#ifndef AFFINITYD_JOIN_WIRE_H
#define AFFINITYD_JOIN_WIRE_H

#include <stdint.h>

#define AFFINITYD_JOIN_SOCKET "join" /* in the daemon's runtime folder */
#define AFFINITYD_JOIN_MAGIC 0x6a666641U
#define AFFINITYD_JOIN_VERSION 1

enum affinityd_join_wish {
    AFFINITYD_WISH_JOIN = 1,  /* `slot` */
    AFFINITYD_WISH_SERVE = 2, /* `cpu` */
    AFFINITYD_WISH_LEAVE = 3,
    AFFINITYD_WISH_WHERE = 4
};

struct affinityd_join_request {
    uint32_t magic;
    uint16_t version;
    uint16_t wish;
    int32_t pid;      /* of the sender, as it knows itself: tells whether it is in another pid namespace */
    int32_t tid;      /* of the thread that is concerned, in the same numbers */
    int32_t cpu;      /* where packets arrive; -1 but for that wish */
    char slot[32];    /* ends with a NUL byte; "" but for that wish */
    uint32_t rest[3]; /* 0 */
};

enum affinityd_join_flags {
    AFFINITYD_JOINED = 1, /* the thread is in `slot` */
    AFFINITYD_SERVES = 2  /* it is where its packets arrive */
};

struct affinityd_join_reply {
    uint32_t magic;
    int32_t status; /* 1: done, 0: as if there were no daemon, else a negative errno value */
    uint32_t flags;
    char policy[208]; /* that the process is under; "": none; ends with a NUL byte */
    char slot[32];
    uint32_t rest;
};

#endif
