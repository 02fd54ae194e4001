/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Both programs see listeners this way, and share these tables: the one that is loaded first makes them. */
#pragma once

#include "lanes.h"

enum { inet = 2, inet6 = 10, tcp = 6, udp = 17, listens = 10 };

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

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, steer_most_services);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct steer_port);
    __type(value, __u32);
} ports SEC(".maps");

static __always_inline void describe(struct sock *sk, struct steer_found *is) {
    struct sock_reuseport *group = sk->sk_reuseport_cb;

    is->cookie = bpf_get_socket_cookie(sk);
    is->port = sk->__sk_common.skc_num;
    is->family = sk->__sk_common.skc_family;
    is->device = sk->__sk_common.skc_bound_dev_if;
    is->has_program = group && group->prog;
    if (is->family == inet6) {
        is->address[0] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[0];
        is->address[1] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[1];
        is->address[2] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[2];
        is->address[3] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[3];
        is->is_dual = !BPF_CORE_READ_BITFIELD_PROBED(&sk->__sk_common, skc_ipv6only);
    } else {
        is->address[0] = sk->__sk_common.skc_rcv_saddr;
    }
}

static __always_inline void mark(struct sock *sk) {
    struct steer_origin origin = {.listener = bpf_get_socket_cookie(sk)};
    __u32 one = 1;
    bpf_sk_storage_get(&marked, sk, &one, BPF_SK_STORAGE_GET_F_CREATE);
    bpf_sk_storage_get(&origins, sk, &origin, BPF_SK_STORAGE_GET_F_CREATE);
}
