/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The counts of intruders.bpf.c, for it and for the program that loads it. */
#pragma once

enum {
    intruders_most_cpus = 1024,     /* a power of two; others cannot be watched */
    intruders_most_sources = 16384, /* by CPU */
    intruders_depth = 8,            /* a power of two: interrupts inside each other */
    intruders_name_bytes = 16,
    intruders_function_bytes = 48,
    intruders_tick_reasons = 6,
};

enum intruders_kind {
    intruders_thread,
    intruders_interrupt,
    intruders_softirq,
    intruders_timer,
    intruders_reschedule,
    intruders_call,
    intruders_irq_work,
    intruders_nmi,
    intruders_other, /* a line of the interrupt table that has no tracepoint */
};

enum intruders_is {
    intruders_is_known = 1, /* else the rest means nothing */
    intruders_is_kernel = 2,
    intruders_is_bound = 4, /* to its CPU, by the kernel */
    intruders_is_interrupt = 8, /* not the task, but an interrupt in its place */
};

/* 32 bytes without gaps. */
struct intruders_task {
    unsigned int tid, pid; /* of the initial PID namespace */
    unsigned int is;
    unsigned int cpu; /* where it was */
    char name[intruders_name_bytes];
};

/* 32 bytes without gaps. */
struct intruders_key {
    unsigned long long function; /* of a timer, a call or a worker; 0: not known */
    unsigned int kind, cpu;
    unsigned int id; /* of an interrupt, softirq or thread */
    unsigned int by; /* tid of `task`, where that is another one */
    unsigned int by_cpu, unused;
};

/* Below 1, 10, 100 us, 1, 10, 100 ms, 1 s, and longer. */
#define intruders_lengths 8

static inline unsigned int intruders_length_of(unsigned long long ns) {
    return (ns >= 1000) + (ns >= 10000) + (ns >= 100000) + (ns >= 1000000) + (ns >= 10000000) + (ns >= 100000000) + (ns >= 1000000000);
}

struct intruders_sum {
    unsigned long long count, total, longest; /* ns, without what interrupted it */
    unsigned long long lengths[intruders_lengths];
    struct intruders_task task;               /* the thread itself, the sender of an IPI, or the owner of a timer */
    char function[intruders_function_bytes];
};

/* Something that goes on, and has interrupted the frame before. */
struct intruders_frame {
    unsigned long long start, inner; /* ns; `inner`: of those, so many belong to frames after it */
    unsigned long long function;
    unsigned int kind, id;
    struct intruders_task by;
};

/* Only its own CPU changes it, but for `sent`, which senders fill in before the IPI comes. */
struct intruders_cpu {
    unsigned int is_watched, depth;
    struct intruders_frame thread;
    struct intruders_frame frames[intruders_depth];
    struct intruders_task sent[3]; /* reschedule, call, irq_work */
    unsigned long long tick_kept[intruders_tick_reasons];
};
