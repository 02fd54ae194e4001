/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The parts of the kernel's types that wakes.bpf.c needs. A suffix after ___ is not part of a name (CO-RE): one type as several kernels have it. */
#pragma once

#include "steer/types.h"

struct task_struct {
    int pid;  /* of the thread */
    int tgid; /* of the process */
    unsigned int __state;
    __u64 start_boottime;
    char comm[16];
} CORE;

/* Before Linux 5.14. */
struct task_struct___old {
    long state;
} CORE;

/* With PREEMPT_RT. */
struct task_struct___rt {
    int softirq_disable_cnt;
} CORE;

/* Where preempt_count() is: include/asm-generic/preempt.h and arch/ARCH/include/asm/preempt.h. */

/* x86 has it in a variable of each CPU: in this one from Linux 6.2 to 6.14, in __preempt_count before and since. */
struct pcpu_hot {
    int preempt_count;
} CORE;

/* The way from a task to another variable of its CPU, "runqueues". */
struct rq;
struct cfs_rq {
    struct rq *rq;
} CORE;
struct sched_entity {
    struct cfs_rq *cfs_rq;
} CORE;
struct task_struct___queued {
    struct sched_entity se;
} CORE;

/* arm64 */
struct preempt___arm64 {
    __u32 count;
};
struct thread_info___arm64 {
    struct preempt___arm64 preempt;
} CORE;
struct task_struct___arm64 {
    struct thread_info___arm64 thread_info;
} CORE;

/* riscv, powerpc, loongarch */
struct thread_info___others {
    int preempt_count;
} CORE;
struct task_struct___others {
    struct thread_info___others thread_info;
} CORE;

struct sk_buff;
struct napi_struct;
