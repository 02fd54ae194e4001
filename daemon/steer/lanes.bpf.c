/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* A new connection goes to a listener of the lane where its first packet arrives, and so does each datagram to a socket without a peer. The
 * kernel lets only programs under the GPL look at sockets; so this one may be used under either license. The daemon loads one for each
 * network namespace. */
#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

#include "listeners.bpf.h"

const volatile unsigned int space = 0; /* inode of the network namespace */
volatile unsigned int serves_datagrams; /* 0: no datagram is looked at */

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, steer_most_lanes);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct steer_lane_key);
    __type(value, struct steer_lane);
} lanes SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_SOCKHASH);
    __uint(max_entries, steer_most_slots);
    __type(key, struct steer_slot);
    __type(value, __u64);
} slots SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, steer_most_listeners);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u64);
    __type(value, struct steer_places);
} places SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 2 * steer_notes);
    __type(key, __u32);
    __type(value, __u64);
} notes SEC(".maps");

static __always_inline void note(const struct bpf_sk_lookup *ctx, __u32 which) {
    const __u32 index = ctx->protocol == tcp ? which : which + steer_notes;
    __u64 *count = bpf_map_lookup_elem(&notes, &index);
    if (count) ++*count;
}

static __always_inline int assign(struct bpf_sk_lookup *ctx, const struct steer_slot *key) {
    struct bpf_sock *sk = bpf_map_lookup_elem(&slots, key);
    struct sock *as_tcp;
    long code = -1;

    if (!sk) return 0;
    as_tcp = (struct sock *)bpf_skc_to_tcp_sock(sk); /* a struct tcp_sock begins with it */
    if (as_tcp && as_tcp->sk_ack_backlog > as_tcp->sk_max_ack_backlog) /* as sk_acceptq_is_full() */
        note(ctx, steer_full);
    else if (sk->state == (ctx->protocol == tcp ? listens : has_no_peer))
        code = bpf_sk_assign(ctx, sk, BPF_SK_LOOKUP_F_NO_REUSEPORT);
    bpf_sk_release(sk);
    return code == 0;
}

/* As the kernel's own search does, an exact address comes first, and IPv4's own before that of IPv6. */
static __always_inline struct steer_service *service_of(struct bpf_sk_lookup *ctx) {
    struct steer_address key = {.space = space, .port = ctx->local_port, .protocol = ctx->protocol}, any;
    struct steer_service *service;
    __u32 ip4 = ctx->local_ip4;

    barrier_var(ip4); /* the verifier takes no choice between two members of the context */
    if (ctx->family == inet) {
        key.address[2] = mapped;
        key.address[3] = ip4;
    } else {
        key.address[0] = ctx->local_ip6[0];
        key.address[1] = ctx->local_ip6[1];
        key.address[2] = ctx->local_ip6[2];
        key.address[3] = ctx->local_ip6[3];
    }
    service = bpf_map_lookup_elem(&services, &key);
    if (service) return service;
    any = any_of(&key);
    service = bpf_map_lookup_elem(&services, &any);
    if (!service || bpf_map_lookup_elem(&strangers, &key)) return 0;
    return service->is_dual && bpf_map_lookup_elem(&strangers, &any) ? 0 : service;
}

/* For each SYN, the last ACK with SYN cookies, and each datagram that finds no socket with a peer. The choice depends on the flow and its CPU
 * only, so that all of a flow find the same socket. */
SEC("sk_lookup")
int steer(struct bpf_sk_lookup *ctx) {
    struct steer_lane_key where = {.cpu = bpf_get_smp_processor_id()};
    struct steer_slot slot = {};
    struct steer_service *service;
    struct steer_lane *lane;
    __u32 flow;

    if (ctx->protocol != tcp && !serves_datagrams) return SK_PASS;
    service = service_of(ctx);
    if (!service || service->slots == 0) return SK_PASS;
    flow = (__u32)ctx->remote_port * 2654435761u; /* clients differ in it, connections of one client too */
    flow ^= flow >> 15;
    where.service = slot.service = service->id;
    lane = bpf_map_lookup_elem(&lanes, &where);
    if (!lane || lane->count == 0 || flow % steer_whole < service->pass_on) {
        note(ctx, steer_to_kernel);
        return SK_PASS;
    }
    if ((flow >> 8) % steer_whole < lane->pass_on)
        slot.slot = (flow >> 4) % service->slots;
    else
        slot.slot = lane->first + (flow >> 4) % lane->count;
    for (int i = 0; i < 4; ++i) {
        if (assign(ctx, &slot)) {
            note(ctx, i == 0 ? steer_to_lane : steer_to_next);
            return SK_PASS;
        }
        slot.slot = slot.slot + 1 >= service->slots ? 0 : slot.slot + 1;
    }
    note(ctx, steer_to_kernel);
    return SK_PASS;
}

static __always_inline void put(struct sock *sk, struct steer_found *is) {
    const __u64 cookie = is->cookie;
    struct steer_places *place = bpf_map_lookup_elem(&places, &cookie);

    if (!place) return;
    for (__u32 i = 0; i < steer_most_places; ++i) {
        struct steer_slot key;
        int code;

        if (i >= place->count) break;
        key = place->at[i];
        code = bpf_map_update_elem(&slots, &key, sk, BPF_ANY);
        if (code) is->refused = code;
    }
}

/* Tells of it, and puts it where it is wanted. */
static __always_inline int tell(struct seq_file *seq, struct sock *sk) {
    struct steer_found is = {};

    if (!sk || !takes(sk) || sk->__sk_common.skc_net.net->ns.inum != space) return 0;
    describe(sk, &is);
    put(sk, &is);
    bpf_seq_write(seq, &is, sizeof(is));
    return 0;
}

/* Walks what a process has open, where the kernel refuses the other iterator. */
SEC("iter/task_file")
int of_files(struct bpf_iter__task_file *ctx) {
    struct task_struct *task = ctx->task;
    struct file *file = ctx->file;
    struct socket *socket;

    if (!file || !task) return 0;
    socket = bpf_sock_from_file(file);
    return socket ? tell(ctx->meta->seq, socket->sk) : 0;
}

/* Listeners that were marked, without a walk of descriptors; puts them where they are wanted. */
SEC("iter/bpf_sk_storage_map")
int of_marked(struct bpf_iter__bpf_sk_storage_map *ctx) {
    return tell(ctx->meta->seq, ctx->sk);
}

char program_license[] SEC("license") = "GPL";
