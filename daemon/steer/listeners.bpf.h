/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Both programs see listeners this way, and share these tables: the one that is loaded first makes them. */
#pragma once

#include "lanes.h"

enum { inet = 2, inet6 = 10, tcp = 6, udp = 17, listens = 10, has_no_peer = 7 };
static const __u32 mapped = bpf_htonl(0xffff); /* third part of an address of IPv4 as one of IPv6 */

/* Marks listeners whose ports matter. */
struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, __u32);
} marked SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
    __type(key, int);
    __type(value, struct steer_origin);
} origins SEC(".maps");

/* The steered addresses. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, steer_most_services);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct steer_address);
    __type(value, struct steer_service);
} services SEC(".maps");

/* More specific addresses of listeners that are not. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, steer_most_strangers);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct steer_address);
    __type(value, struct steer_stranger);
} strangers SEC(".maps");

/* The same port at any address of its family. */
static __always_inline struct steer_address any_of(const struct steer_address *at) {
    struct steer_address any = {.space = at->space, .port = at->port, .protocol = at->protocol};

    if (at->address[0] == 0 && at->address[1] == 0 && at->address[2] == mapped) any.address[2] = mapped;
    return any;
}

static __always_inline int takes(struct sock *sk) {
    const unsigned short family = sk->__sk_common.skc_family;
    const unsigned char state = sk->__sk_common.skc_state;
    const int is_open = sk->sk_protocol == tcp ? state == listens : sk->sk_protocol == udp && state == has_no_peer && sk->sk_reuseport_cb;

    return is_open && (family == inet || family == inet6);
}

static __always_inline void describe(struct sock *sk, struct steer_found *is) {
    struct sock_reuseport *group = sk->sk_reuseport_cb;
    struct steer_address *at = &is->at;

    is->cookie = bpf_get_socket_cookie(sk);
    is->inode = BPF_CORE_READ((struct socket_alloc *)sk->sk_socket, vfs_inode.i_ino);
    is->device = sk->__sk_common.skc_bound_dev_if;
    is->has_program = group && group->prog;
    at->space = sk->__sk_common.skc_net.net->ns.inum;
    at->port = sk->__sk_common.skc_num;
    at->protocol = sk->sk_protocol;
    if (sk->__sk_common.skc_family == inet) {
        at->address[2] = mapped;
        at->address[3] = sk->__sk_common.skc_rcv_saddr;
        return;
    }
    at->address[0] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[0];
    at->address[1] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[1];
    at->address[2] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[2];
    at->address[3] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[3];
    is->is_dual = !BPF_CORE_READ_BITFIELD_PROBED(&sk->__sk_common, skc_ipv6only);
}

static __always_inline void mark(struct sock *sk) {
    struct steer_origin origin = {.listener = bpf_get_socket_cookie(sk)};
    __u32 one = 1;
    bpf_sk_storage_get(&marked, sk, &one, BPF_SK_STORAGE_GET_F_CREATE);
    bpf_sk_storage_get(&origins, sk, &origin, BPF_SK_STORAGE_GET_F_CREATE);
}
