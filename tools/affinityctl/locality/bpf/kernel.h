/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What reads.bpf.c needs of the kernel's types. Each member is found in the running kernel by its name (CO-RE), so neither the order nor
 * the rest matters, and the machine that builds this needs no BTF. Source: include/net/sock.h, include/linux/sched.h, uapi/linux/bpf.h. */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2 };
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };

#define CORE __attribute__((preserve_access_index))

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
