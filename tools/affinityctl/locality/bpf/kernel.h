/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What reads.bpf.c needs of the kernel's types. Source: include/net/sock.h. */
#pragma once

#include "affinityctl/kernel/types.h"

struct ns_common {
    unsigned int inum;
} CORE;

struct net {
    struct ns_common ns;
} CORE;

typedef struct {
    struct net *net;
} CORE possible_net_t;

struct sock_common {
    unsigned short skc_family;
    volatile unsigned char skc_state;
    possible_net_t skc_net;
    int skc_incoming_cpu;
} CORE;

typedef struct {
    int owned;
} CORE socket_lock_t;

struct sock {
    struct sock_common __sk_common;
    socket_lock_t sk_lock;
    int sk_rx_dst_ifindex;
    unsigned int sk_napi_id;
    __u16 sk_protocol;
} CORE;
