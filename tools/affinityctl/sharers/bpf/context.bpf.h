/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* In which context a program for the kernel was called. */
#pragma once

#include "steer/types.h"

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "kernel.h"

/* x86: from the variable "runqueues" of a CPU to the one with its preempt_count; 0: not known, or another architecture. Set before loading. A
 * kernel without CONFIG_KALLSYMS_ALL lets no program name such a variable, but the task that runs knows where the first one is. */
const volatile __s64 preempt_distance = 0;

enum context { in_task, in_softirq, in_interrupt };

static __always_inline __u32 preempt_count_of(struct task_struct *current) {
    const struct task_struct___queued *queued = (void *)current;
    const struct task_struct___arm64 *arm64 = (void *)current;
    const struct task_struct___others *others = (void *)current;
    __u32 count = ~0U; /* not known: all counts as an interrupt, which the program that loads this finds out */
    __u64 address;

    if (preempt_distance) {
        address = (__u64)queued->se.cfs_rq->rq + preempt_distance;
        if (bpf_core_type_exists(struct pcpu_hot)) address += bpf_core_field_offset(struct pcpu_hot, preempt_count);
        if (bpf_probe_read_kernel(&count, sizeof(count), (void *)address) != 0) count = ~0U;
    } else if (bpf_core_field_exists(arm64->thread_info.preempt.count)) {
        count = arm64->thread_info.preempt.count;
    } else if (bpf_core_field_exists(others->thread_info.preempt_count)) {
        count = others->thread_info.preempt_count;
    }
    return count;
}

/* In the middle of what is the kernel? include/linux/preempt.h. Bit 8 is set while softirqs are served, bits 9 to 15 while they are only kept
 * off, which a task does. Interrupts have bits 16 to 19 and NMIs 20 to 23, or, where interrupts that are kept off are counted in 16 to 23,
 * 24 to 27 and those above. The highest bit is no count. */
static __always_inline enum context context_of(struct task_struct *current) {
    const __u32 count = preempt_count_of(current);
    const struct task_struct___rt *rt = (void *)current;
    __u32 softirqs = count;

    if (count & 0x7fff0000) return in_interrupt;
    if (bpf_core_field_exists(rt->softirq_disable_cnt)) softirqs = rt->softirq_disable_cnt;
    return softirqs & 0x100 ? in_softirq : in_task;
}
