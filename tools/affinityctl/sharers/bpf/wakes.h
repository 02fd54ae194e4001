/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What wakes.bpf.c counts, for it and for the program that loads it. */
#pragma once

enum {
    sharers_most_pairs = 131072,  /* pairs of threads, each way one */
    sharers_most_threads = 32768, /* threads that were woken or woke others */
    sharers_name_bytes = 16,
    sharers_most_cpus = 1024, /* CPUs on which packets to this machine itself are followed */
};

/* A thread that cannot be mistaken for a later one with the same number. 16 bytes without gaps. */
struct sharers_thread {
    unsigned long long born; /* task_struct.start_boottime, ns */
    unsigned int tid;        /* of the initial PID namespace */
    unsigned int unused;
};

/* Who woke whom. 24 bytes without gaps. */
struct sharers_pair {
    unsigned long long waker_born, wakee_born;
    unsigned int waker, wakee;
};

struct sharers_facts {
    char name[sharers_name_bytes];
    unsigned long long by_interrupts; /* times that an interrupt woke it, on nobody's behalf */
    unsigned long long by_others;     /* times that a task of another process or of the kernel did */
};

/* Of one CPU: a packet that a thread of the process sends to this machine itself. 64 bytes, so that no two CPUs share a cache line. */
struct sharers_delivery {
    unsigned long long packet; /* handed to this CPU's backlog and not taken from there yet; 0: none */
    struct sharers_thread sender;
    int is_on; /* it is the one that is being taken in now */
    int unused[9];
};

/* Places in the table of what was not counted. */
enum {
    sharers_lost,     /* wake-ups for whose pair there was no room */
    sharers_nameless, /* times that there was no room for a thread */
    sharers_notes,
};
