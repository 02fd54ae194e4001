/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The counts of wakes.bpf.c, for it and for the program that loads it. */
#pragma once

enum {
    sharers_most_pairs = 131072,  /* pairs of threads, each way one */
    sharers_most_threads = 32768, /* threads that were woken or woke others */
    sharers_name_bytes = 16,
    sharers_most_cpus = 1024, /* a power of two: CPUs with places of their own; on others, packets to this machine itself are not followed */
    sharers_quick_places = 32, /* of each */
};

/* A thread that cannot be mistaken for a later one with the same number. 16 bytes without gaps. */
struct sharers_thread {
    unsigned long long born; /* task_struct.start_boottime, ns */
    unsigned int tid;        /* of the initial PID namespace */
    unsigned int unused;
};

/* A pair of waker and woken thread. 24 bytes without gaps. */
struct sharers_pair {
    unsigned long long waker_born, wakee_born;
    unsigned int waker, wakee;
};

struct sharers_facts {
    char name[sharers_name_bytes];
    unsigned long long by_interrupts; /* times that an interrupt woke it, on no task's behalf */
    unsigned long long by_others;     /* times that a task of another process or of the kernel did */
};

/* Wake-ups of one pair on one CPU, counted without a search: the first pair that wants the place keeps it. */
struct sharers_place {
    struct sharers_pair pair;
    unsigned long long times; /* 0: the place is free */
};

/* The counters of one CPU, in cache lines of their own. */
struct sharers_cpu {
    /* A packet that a thread of the process sends to this machine itself: handed to this CPU's backlog and not taken from there yet; 0: none */
    unsigned long long packet;
    struct sharers_thread sender;
    int is_delivered; /* it is the one that is being taken in now */
    int unused[7];
    struct sharers_place places[sharers_quick_places];
};
