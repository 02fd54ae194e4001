/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The kernel lets only programs under the GPL look at a task; so this one may be used under either license.
 *
 * Counts which threads of one process wake each other. No data is looked at. */
#include "context.bpf.h"
#include "wakes.h"

/* The process, by its number in the initial PID namespace; 0: none. Set and changed by the program that loads this. */
volatile int watched = 0;
volatile int is_full = 0; /* the table of pairs */
unsigned long long lost = 0; /* wake-ups for whose pair there was no room */

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, sharers_most_pairs);
    __type(key, struct sharers_pair);
    __type(value, __u64);
} pairs SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, sharers_most_threads);
    __type(key, struct sharers_thread);
    __type(value, struct sharers_facts);
} threads SEC(".maps");

/* Memory that the program which loads this sees, too. No two programs of this file change one CPU's at once: tasks are woken with interrupts off,
 * and packets go to and from a backlog with softirqs off. */
struct sharers_cpu cpus[sharers_most_cpus];

/* A wait that a signal may end: for futexes, pipes, sockets and the like. The kernel's own locks are waited for without. */
static __always_inline int is_waiting(struct task_struct *task) {
    const struct task_struct___old *old = (void *)task;
    const unsigned int interruptible = 1; /* TASK_INTERRUPTIBLE, include/linux/sched.h */

    if (bpf_core_field_exists(task->__state)) return (task->__state & interruptible) != 0;
    return bpf_core_field_exists(old->state) && (old->state & interruptible) != 0;
}

static __always_inline void identify(struct sharers_thread *thread, struct task_struct *task) {
    thread->born = task->start_boottime;
    thread->tid = task->pid;
    thread->unused = 0;
}

static __always_inline struct sharers_facts *facts_of(const struct sharers_thread *thread, struct task_struct *task) {
    struct sharers_facts *known = bpf_map_lookup_elem(&threads, thread);
    struct sharers_facts facts = {};

    if (known) return known;
    bpf_probe_read_kernel_str(facts.name, sizeof(facts.name), &task->comm);
    bpf_map_update_elem(&threads, thread, &facts, BPF_NOEXIST);
    return bpf_map_lookup_elem(&threads, thread);
}

static __always_inline struct sharers_cpu *cpu_here(void) {
    __u32 cpu = bpf_get_smp_processor_id();

    if (cpu >= sharers_most_cpus) return 0;
    barrier_var(cpu); /* the bound is to be seen where the index is used: Linux 6.1 remembers no other */
    return &cpus[cpu & (sharers_most_cpus - 1)];
}

static __always_inline void remember_names(const struct sharers_pair *pair, struct task_struct *current, struct task_struct *wakee) {
    struct sharers_thread thread;

    identify(&thread, wakee);
    facts_of(&thread, wakee);
    identify(&thread, current);
    if (thread.tid == pair->waker) facts_of(&thread, current);
}

static __always_inline int is_equal(const struct sharers_pair *one, const struct sharers_pair *other) {
    return one->waker == other->waker && one->wakee == other->wakee && one->waker_born == other->waker_born && one->wakee_born == other->wakee_born;
}

static __always_inline void count_pair(struct sharers_cpu *here, const struct sharers_thread *waker, struct task_struct *current,
                                       struct task_struct *wakee) {
    struct sharers_place *place = 0;
    struct sharers_pair pair;
    __u64 times = 1;
    __u64 *count;

    pair.waker = waker->tid;
    pair.waker_born = waker->born;
    pair.wakee = wakee->pid;
    pair.wakee_born = wakee->start_boottime;
    if (pair.waker == pair.wakee) return; /* it was about to sleep, and does not */
    if (here) {
        place = &here->places[(pair.waker * 7 + pair.wakee) % sharers_quick_places];
        if (place->times && is_equal(&place->pair, &pair)) {
            ++place->times;
            return;
        }
        if (!place->times) {
            place->pair = pair;
            place->times = 1;
            remember_names(&pair, current, wakee);
            return;
        }
    }
    count = bpf_map_lookup_elem(&pairs, &pair);
    if (count) {
        __sync_fetch_and_add(count, 1);
        return;
    }
    if (is_full || bpf_map_update_elem(&pairs, &pair, &times, BPF_NOEXIST) != 0) {
        is_full = 1;
        __sync_fetch_and_add(&lost, 1);
        return;
    }
    remember_names(&pair, current, wakee);
}

static __always_inline void count_other(struct task_struct *wakee, int is_interrupt) {
    struct sharers_thread woken;
    struct sharers_facts *facts;

    identify(&woken, wakee);
    facts = facts_of(&woken, wakee);
    if (facts) __sync_fetch_and_add(is_interrupt ? &facts->by_interrupts : &facts->by_others, 1);
}

/* In the waking context, before the task's state changes; once for each time that a task which waits is woken. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *wakee) {
    struct sharers_cpu *here;
    struct task_struct *current;
    struct sharers_thread waker;
    enum context context;

    if (wakee->tgid != watched || !is_waiting(wakee)) return 0;
    here = cpu_here();
    current = bpf_get_current_task_btf();
    context = context_of(current);
    if (context == in_task && current->tgid == watched) {
        identify(&waker, current);
        count_pair(here, &waker, current, wakee);
        return 0;
    }
    /* "current" is the task that was interrupted; but a packet to this machine itself is taken in by a softirq that runs in its sender's place. */
    if (context == in_softirq && here && here->is_delivered) {
        waker = here->sender;
        count_pair(here, &waker, current, wakee);
        return 0;
    }
    count_other(wakee, context != in_task);
    return 0;
}

/* A packet goes to the backlog of a CPU: one of the loopback device or of a veth device. */
SEC("tp_btf/netif_rx")
int BPF_PROG(on_sent, struct sk_buff *packet) {
    struct task_struct *current = bpf_get_current_task_btf();
    struct sharers_cpu *here = cpu_here();

    if (!here) return 0;
    if (current->tgid == watched && context_of(current) == in_task) {
        here->packet = (__u64)packet;
        identify(&here->sender, current);
    } else if (here->packet == (__u64)packet) {
        here->packet = 0; /* taken in elsewhere, and used again */
    }
    return 0;
}

/* A packet is taken from there, or from a device. */
SEC("tp_btf/netif_receive_skb")
int BPF_PROG(on_received, struct sk_buff *packet) {
    struct sharers_cpu *here = cpu_here();

    if (!here || (!here->packet && !here->is_delivered)) return 0;
    here->is_delivered = here->packet == (__u64)packet;
    if (here->is_delivered) here->packet = 0;
    return 0;
}

/* A backlog or a device has no more. */
SEC("tp_btf/napi_poll")
int BPF_PROG(on_polled, struct napi_struct *napi, int work, int budget) {
    struct sharers_cpu *here = cpu_here();

    if (here && here->is_delivered) here->is_delivered = 0;
    return 0;
}

char program_license[] SEC("license") = "GPL";
