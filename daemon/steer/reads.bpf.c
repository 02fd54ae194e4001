/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The kernel lets only programs under the GPL look at a socket; so this one may be used under either license.
 *
 * Counts who reads where the kernel took the packet in. No packet data and no addresses are looked at. */
#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

#include "listeners.bpf.h"
#include "reads.h"

/* Set before loading: CPUs that this machine may have. Any other number was set by the owner of the socket, as every user may. */
const volatile unsigned int possible_cpus = 0;

/* Also set before: who takes connections from which listener is counted, too. */
const volatile unsigned int counts_takers = 0;

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, steer_most_listeners);
    __type(key, struct steer_taker);
    __type(value, __u64);
} takers SEC(".maps");

/* Processes whose listeners are marked from when they begin to listen. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, steer_most_processes);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u32);
    __type(value, __u64);
} followed SEC(".maps");

/* At listeners that are counted among strangers. */
struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, __u32);
} counted SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 65536);
} events SEC(".maps");

/* The reading CPU is part of the key: a count is changed by one CPU only, and no cache line travels. Nor is it changed by two programs at
 * once: the kernel runs none inside itself on one CPU, and those of this file count different protocols. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, locality_most_pairs);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct locality_key);
    __type(value, __u64);
} pairs SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, locality_most_readers);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u32);
    __type(value, char[locality_name_bytes]);
} readers SEC(".maps");

volatile unsigned int marks_datagrams; /* for of_process */
__u64 lost;       /* reads for which the table had no room */
__u64 in_softirq; /* data that the kernel itself took in a softirq, where no process reads (TLS, ...) */

/* Counts of TCP by CPU, found without a search: the first key that wants a place keeps it as long as it is in use, others go to the table.
 * As many as there are CPUs, set before loading. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, locality_quick_places);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct locality_place);
} places SEC(".maps");

static __always_inline void remember_name(__u32 process) {
    char name[locality_name_bytes] = {};
    if (bpf_map_lookup_elem(&readers, &process)) return;
    bpf_get_current_comm(name, sizeof(name));
    bpf_map_update_elem(&readers, &process, &name, BPF_ANY);
}

static __always_inline void fill(struct locality_key *key, struct sock *sk, __u32 protocol, int is_arrival_known) {
    const __u64 both = bpf_get_current_pid_tgid();

    key->process = both >> 32;
    key->thread = both;
    key->network_space = sk->__sk_common.skc_net.net->ns.inum;
    key->device = 0;
    key->napi = 0;
    if (bpf_core_field_exists(sk->sk_rx_dst_ifindex)) key->device = sk->sk_rx_dst_ifindex;
    if (bpf_core_field_exists(sk->sk_napi_id)) key->napi = sk->sk_napi_id;
    key->arrival = is_arrival_known ? sk->__sk_common.skc_incoming_cpu : -1;
    if (key->arrival < 0 || (__u32)key->arrival >= possible_cpus) key->arrival = -1;
    key->reader = bpf_get_smp_processor_id();
    key->protocol = protocol;
}

static __always_inline void count_in_table(const struct locality_key *key) {
    const __u64 one = 1;
    __u64 *count = bpf_map_lookup_elem(&pairs, key);

    if (count) {
        ++*count;
        return;
    }
    remember_name(key->process);
    if (bpf_map_update_elem(&pairs, key, &one, BPF_NOEXIST) != 0) __sync_fetch_and_add(&lost, 1);
}

static __always_inline int is_equal(const struct locality_key *one, const struct locality_key *other) {
    return one->process == other->process && one->thread == other->thread && one->arrival == other->arrival && one->napi == other->napi &&
           one->device == other->device && one->network_space == other->network_space;
}

/* False: it has no place of its own. */
static __always_inline int count_in_place(const struct locality_key *key) {
    const __u32 slot = (key->thread * 31 + (__u32)key->arrival * 7 + key->napi + key->device) % locality_quick_places;
    const __u32 index = key->reader * locality_quick_places + slot;
    struct locality_place *place = bpf_map_lookup_elem(&places, &index);

    if (!place) return 0;
    if (!is_equal(&place->key, key)) {
        if (place->reads && !place->is_idle) return 0;
        remember_name(key->process);
        place->key = *key;
    }
    if (place->is_idle) place->is_idle = 0;
    ++place->reads;
    return 1;
}

/* The task that reads first from a connection is the one that took it; all that read a socket of UDP count. */
static __always_inline void note_taker(struct sock *sk, const struct locality_key *key) {
    struct steer_origin *from = bpf_sk_storage_get(&origins, sk, 0, 0);
    struct steer_taker taker = {.process = key->process, .thread = key->thread};
    const __u64 one = 1;
    __u64 *count;

    if (!from || (key->protocol == tcp && from->is_read)) return;
    from->is_read = 1;
    taker.listener = from->listener;
    count = bpf_map_lookup_elem(&takers, &taker);
    if (count)
        ++*count; /* one thread: one place */
    else
        bpf_map_update_elem(&takers, &taker, &one, BPF_NOEXIST);
}

/* In the reading task, after data of a packet was copied. */
SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(on_tcp_read, struct sock *sk) {
    struct locality_key key = {};

    /* A task that reads owns the socket; a softirq that takes data for the kernel only holds its spin lock, and "current" is the task
     * that was interrupted. */
    if (sk->sk_lock.owned == 0) {
        __sync_fetch_and_add(&in_softirq, 1);
        return 0;
    }
    fill(&key, sk, tcp, 1);
    if (counts_takers) note_taker(sk, &key);
    if (!count_in_place(&key)) count_in_table(&key);
    return 0;
}

/* Once for each recvmsg(2) or the like of any socket, TCP too, which costs; Linux 6.3 and later. With takers, only for as long as it is not
 * known who reads a socket of UDP. */
SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_other_read, struct sock *sk, int length) {
    const unsigned short family = sk->__sk_common.skc_family;
    struct locality_key key = {};

    if (length < 0 || (family != inet && family != inet6) || sk->sk_protocol == tcp) return 0;
    /* The kernel notes the CPU at sockets with a peer only; elsewhere it is what the owner has set. */
    fill(&key, sk, sk->sk_protocol, sk->__sk_common.skc_state != has_no_peer);
    if (counts_takers)
        note_taker(sk, &key);
    else
        count_in_table(&key);
    return 0;
}

/* False: there is no room. */
static __always_inline int note_stranger(struct sock *sk, const struct steer_address *at) {
    const struct steer_stranger first = {bpf_ktime_get_ns(), 1};
    struct steer_stranger *its = bpf_map_lookup_elem(&strangers, at);
    __u32 *is_counted;

    if (its) {
        its->opened = first.opened;
        __sync_fetch_and_add(&its->number, 1);
    } else if (bpf_map_update_elem(&strangers, at, &first, BPF_ANY) != 0) {
        return 0;
    }
    is_counted = bpf_sk_storage_get(&counted, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (is_counted) *is_counted = 1;
    return 1;
}

/* The last listener on an address takes the entry along: others may open and close as many as they like. A socket that begins to listen there
 * in this very moment is in the daemon's next list. */
static __always_inline void forget_stranger(struct sock *sk) {
    __u32 *is_counted = bpf_sk_storage_get(&counted, sk, 0, 0);
    struct steer_stranger *its;
    struct steer_found is = {};

    if (!is_counted || !*is_counted) return;
    *is_counted = 0;
    describe(sk, &is);
    its = bpf_map_lookup_elem(&strangers, &is.at);
    if (its && __sync_fetch_and_sub(&its->number, 1) == 1) bpf_map_delete_elem(&strangers, &is.at);
}

/* Marks a listener of a process that is followed, or one more of an address that is steered, and tells the daemon. A listener on a more
 * specific address than that keeps its connections from the first, as the program that steers leaves that address alone from now on. All
 * others, as any user may open on addresses of his own, do not matter. */
static __always_inline void note_listener(struct sock *sk) {
    const __u32 process = bpf_get_current_pid_tgid() >> 32;
    struct steer_found is = {};
    struct steer_service *service;
    int matters = bpf_map_lookup_elem(&followed, &process) != 0;
    struct steer_opened opened = {.process = process};

    if (sk->sk_protocol != tcp) return;
    describe(sk, &is);
    service = bpf_map_lookup_elem(&services, &is.at);
    if (service && !service->is_dual) {
        matters = 1;
    } else {
        const struct steer_address any = any_of(&is.at);

        if (!service) service = bpf_map_lookup_elem(&services, &any);
        if (service && !note_stranger(sk, &is.at)) {
            service->slots = 0; /* there is no room: the kernel chooses for all of them */
            matters = opened.is_paused = 1;
        }
    }
    if (!matters) return;
    mark(sk);
    bpf_ringbuf_output(&events, &opened, sizeof(opened), 0);
}

/* Where the kernel lets a function be followed; else on_state, which is called ten times for each connection. */
SEC("fentry/inet_csk_listen_start")
int BPF_PROG(on_listen, struct sock *sk) {
    note_listener(sk);
    return 0;
}

/* The kernel may have refused it. */
SEC("fexit/inet_csk_listen_start")
int BPF_PROG(on_listen_end, struct sock *sk) {
    if (sk->__sk_common.skc_state != listens) forget_stranger(sk);
    return 0;
}

SEC("fentry/inet_csk_listen_stop")
int BPF_PROG(on_stop, struct sock *sk) {
    forget_stranger(sk);
    return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_state, struct sock *sk, int before, int now) {
    if (now == listens) note_listener(sk);
    if (before == listens) forget_stranger(sk);
    return 0;
}

/* Marks what a process has open, and tells of it, under RCU: no lock of a socket is taken. For listeners that were there before the event was
 * watched, and for sockets of UDP, which have none. */
SEC("iter/task_file")
int of_process(struct bpf_iter__task_file *ctx) {
    struct task_struct *task = ctx->task;
    struct file *file = ctx->file;
    struct steer_found is = {};
    struct socket *socket;
    struct sock *sk;

    if (!file || !task) return 0;
    socket = bpf_sock_from_file(file);
    if (!socket) return 0;
    sk = socket->sk;
    if (!sk || !takes(sk)) return 0;
    describe(sk, &is);
    bpf_seq_write(ctx->meta->seq, &is, sizeof(is));
    if (sk->sk_protocol == tcp || marks_datagrams) mark(sk);
    return 0;
}

char program_license[] SEC("license") = "GPL";
