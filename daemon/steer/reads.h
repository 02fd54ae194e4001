/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The counts of reads.bpf.c, for it and for the program that loads it. */
#pragma once

enum {
    locality_most_pairs = 32768,   /* keys of the table of counts */
    locality_most_readers = 16384, /* processes */
    locality_name_bytes = 16,      /* of the thread that read first */
    locality_quick_places = 64,    /* of each CPU */
};

/* Reads of one process where the packet was taken in on one CPU and read on another. 32 bytes without gaps. */
struct locality_key {
    unsigned int process;       /* tgid of the initial PID namespace */
    unsigned int thread;
    unsigned int network_space; /* inode of the socket's network namespace */
    unsigned int device;        /* ifindex there at which the flow came in last; 0: not known */
    unsigned int napi;          /* NAPI instance that took the flow in last; 0: not known */
    int arrival;                /* CPU of that softirq; -1: not known */
    unsigned int reader;        /* CPU of the read */
    unsigned int protocol;      /* IPPROTO_TCP = 6, ... */
};

struct locality_place {
    struct locality_key key;
    unsigned long long reads; /* of all keys that this place has had; 0: none yet */
    unsigned long long is_idle; /* set by the program that reads it: another key may take the place */
};
