/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The kernel's types that reads.bpf.c and lanes.bpf.c need. Source: include/net/sock.h. */
#pragma once

#include "types.h"

struct ns_common {
    unsigned int inum;
} CORE;

struct net {
    struct ns_common ns;
} CORE;

typedef struct {
    struct net *net;
} CORE possible_net_t;

struct in6_addr {
    union {
        __u32 u6_addr32[4];
    } in6_u;
} CORE;

struct sock_common {
    __u32 skc_rcv_saddr;
    unsigned short skc_family;
    volatile unsigned char skc_state;
    unsigned char skc_ipv6only : 1;
    int skc_bound_dev_if;
    __u16 skc_num;
    possible_net_t skc_net;
    struct in6_addr skc_v6_rcv_saddr;
    int skc_incoming_cpu;
} CORE;

typedef struct {
    int owned;
} CORE socket_lock_t;

struct bpf_prog;
struct socket;
struct sock_reuseport {
    struct bpf_prog *prog;
} CORE;

struct sock {
    struct sock_common __sk_common;
    socket_lock_t sk_lock;
    int sk_rx_dst_ifindex;
    unsigned int sk_napi_id;
    __u16 sk_protocol;
    __u32 sk_ack_backlog;
    __u32 sk_max_ack_backlog;
    struct sock_reuseport *sk_reuseport_cb;
    struct socket *sk_socket;
} CORE;

struct tcp_sock;

struct file;
struct inode {
    unsigned long i_ino;
} CORE;
struct socket {
    struct sock *sk;
} CORE;
struct socket_alloc {
    struct socket socket;
    struct inode vfs_inode;
} CORE;
struct task_struct;

/* Contexts of programs. Source: uapi/linux/bpf.h, kernel/bpf/task_iter.c, net/core/bpf_sk_storage.c. */
struct seq_file;
struct bpf_iter_meta {
    struct seq_file *seq;
} CORE;
struct bpf_iter__task_file {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
    struct file *file;
} CORE;
struct bpf_iter__bpf_sk_storage_map {
    struct bpf_iter_meta *meta;
    struct sock *sk;
} CORE;

struct bpf_sock {
    __u32 state;
} CORE;
struct bpf_sk_lookup {
    __u32 family;
    __u32 protocol;
    __u16 remote_port;
    __u32 local_ip4;
    __u32 local_ip6[4];
    __u32 local_port;
} CORE;
