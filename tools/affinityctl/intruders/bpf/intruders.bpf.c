/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The kernel lets only programs under the GPL look at a task; so this one may be used under either license.
 *
 * Counts what interrupts the program on watched CPUs, and for how long. No data is looked at. */
#include "affinityctl/sharers/bpf/context.bpf.h"

#include "intruders.h"

/* Other parts of the kernel's types; a suffix after ___ is not part of a name. */
struct task_struct___flags {
    unsigned int flags;
} CORE;
struct work_struct {
    void *func;
} CORE;
struct hrtimer {
    void *function;
} CORE;
struct hrtimer_sleeper {
    struct hrtimer timer;
    struct task_struct *task;
} CORE;
struct upid {
    int nr;
} CORE;
struct pid {
    struct upid numbers[1];
} CORE;
struct k_itimer {
    struct pid *it_pid;
    union {
        struct {
            struct hrtimer timer;
        } real;
    } it;
} CORE;
struct irqaction;
struct cpumask;

/* Timers whose owner can be told. */
extern const void hrtimer_wakeup __ksym __weak;
extern const void posix_timer_fn __ksym __weak;

unsigned long long began = 0;     /* CLOCK_MONOTONIC, ns */
unsigned long long lost = 0;      /* intrusions for which the table had no room */

/* Memory that the program which loads this sees, too: all CPUs, and the numbers of those that are watched. */
struct intruders_cpu cpus[intruders_most_cpus];
__u32 listed[intruders_most_cpus];
__u32 listed_cpus = 0;

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, intruders_most_sources);
    __type(key, struct intruders_key);
    __type(value, struct intruders_sum);
} sums SEC(".maps");

static __always_inline struct intruders_cpu *watched(__u32 cpu) {
    struct intruders_cpu *here;

    if (cpu >= intruders_most_cpus) return 0;
    barrier_var(cpu); /* the bound is to be seen where the index is used: Linux 6.1 remembers no other */
    here = &cpus[cpu & (intruders_most_cpus - 1)];
    return here->is_watched ? here : 0;
}

static __always_inline struct intruders_cpu *here(void) { return watched(bpf_get_smp_processor_id()); }

static __always_inline void describe(struct intruders_task *into, struct task_struct *task) {
    const unsigned int flags = ((struct task_struct___flags *)task)->flags; /* PF_, include/linux/sched.h */

    into->tid = task->pid;
    into->pid = task->tgid;
    into->cpu = bpf_get_smp_processor_id();
    into->is = intruders_is_known | (flags & 0x00200000 ? intruders_is_kernel : 0) | (flags & 0x04000000 ? intruders_is_bound : 0);
    bpf_probe_read_kernel_str(into->name, sizeof(into->name), &task->comm);
}

/* `time` has that of the interruptions inside it, which may have come after it was read. */
static __noinline int account(const struct intruders_frame *frame, __u64 time) {
    const __u64 inner = frame ? frame->inner : 0, length = time > inner ? time - inner : 0;
    struct intruders_key key = {};
    struct intruders_sum *sum, new = {};
    __u64 address;

    if (!frame) return 0;
    address = frame->function;
    key.function = address;
    key.kind = frame->kind;
    key.cpu = bpf_get_smp_processor_id();
    key.id = frame->id;
    if (frame->by.is && frame->kind != intruders_thread) {
        key.by = frame->by.is & intruders_is_interrupt ? 0 : frame->by.tid;
        if (frame->kind != intruders_timer) key.by_cpu = frame->by.cpu;
    }
    sum = bpf_map_lookup_elem(&sums, &key);
    if (!sum) {
        new.task = frame->by; /* the tool may read it at once */
        if (address) bpf_snprintf(new.function, sizeof(new.function), "%ps", &address, sizeof(address));
        if (bpf_map_update_elem(&sums, &key, &new, BPF_NOEXIST) != 0 || !(sum = bpf_map_lookup_elem(&sums, &key))) {
            __sync_fetch_and_add(&lost, 1);
            return 0;
        }
    }
    ++sum->count;
    sum->total += length;
    if (length > sum->longest) sum->longest = length;
    ++sum->lengths[intruders_length_of(length) & (intruders_lengths - 1)];
    sum->task = frame->by;
    return 0;
}

static __always_inline struct intruders_frame *top(struct intruders_cpu *cpu) {
    __u32 depth = cpu->depth;

    if (depth == 0 || depth > intruders_depth) return 0;
    --depth;
    barrier_var(depth);
    return &cpu->frames[depth & (intruders_depth - 1)];
}

/* The thread that an interrupt finds on a CPU where none was seen yet has been there since the watch began. */
static __always_inline void find_thread(struct intruders_cpu *cpu, struct task_struct *task) {
    if (cpu->thread.start) return;
    cpu->thread.start = began;
    cpu->thread.id = task->pid;
    describe(&cpu->thread.by, task);
}

/* An interrupt may come in the midst of this: the depth is right first. */
static __always_inline struct intruders_frame *push(struct intruders_cpu *cpu, __u32 kind, __u32 id) {
    struct intruders_frame *frame;

    find_thread(cpu, bpf_get_current_task_btf());
    ++cpu->depth;
    barrier();
    frame = top(cpu);
    if (!frame) return 0;
    frame->start = bpf_ktime_get_ns();
    frame->inner = 0;
    frame->function = 0;
    frame->kind = kind;
    frame->id = id;
    frame->by.is = 0;
    return frame;
}

/* False: its beginning was not seen. */
static __always_inline int pop(__u32 kind) {
    struct intruders_cpu *cpu = here();
    struct intruders_frame *frame, *outer;
    __u64 length;

    if (!cpu || !(frame = top(cpu)) || frame->kind != kind) return 0;
    length = bpf_ktime_get_ns() - frame->start;
    account(frame, length);
    --cpu->depth;
    barrier();
    outer = top(cpu);
    if (!outer) outer = &cpu->thread;
    outer->inner += length;
    return 0;
}

static __always_inline int enter(__u32 kind, __u32 id) {
    struct intruders_cpu *cpu = here();

    if (cpu) push(cpu, kind, id);
    return 0;
}

/* An IPI, with the sender that announced it. */
static __always_inline int receive(__u32 kind) {
    struct intruders_cpu *cpu = here();
    struct intruders_frame *frame;
    const __u32 slot = kind - intruders_reschedule;

    if (!cpu || !(frame = push(cpu, kind, 0))) return 0;
    frame->by = cpu->sent[slot];
    cpu->sent[slot].is = 0;
    return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(on_interrupt, int irq, struct irqaction *action) { return enter(intruders_interrupt, irq); }
SEC("tp_btf/irq_handler_exit")
int BPF_PROG(on_interrupt_end, int irq, struct irqaction *action) { return pop(intruders_interrupt); }
SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq, unsigned int vector) { return enter(intruders_softirq, vector); }
SEC("tp_btf/softirq_exit")
int BPF_PROG(on_softirq_end, unsigned int vector) { return pop(intruders_softirq); }

/* A vector of x86: its beginning and its end. */
#define VECTOR(name, begins, kind)                                       \
    SEC("tp_btf/" #name "_entry")                                        \
    int BPF_PROG(on_##name, int vector) { return begins; }               \
    SEC("tp_btf/" #name "_exit")                                         \
    int BPF_PROG(on_##name##_end, int vector) { return pop(kind); }
VECTOR(local_timer, enter(intruders_timer, 0), intruders_timer)
VECTOR(reschedule, receive(intruders_reschedule), intruders_reschedule)
VECTOR(call_function, receive(intruders_call), intruders_call)
VECTOR(call_function_single, receive(intruders_call), intruders_call)
VECTOR(irq_work, receive(intruders_irq_work), intruders_irq_work)

/* After its handler; the frame that it interrupted has its time, too. */
SEC("tp_btf/nmi_handler")
int BPF_PROG(on_nmi, void *handler, __s64 length, int handled) {
    struct intruders_frame frame = {.function = (__u64)handler, .kind = intruders_nmi};

    return here() && handled ? account(&frame, length) : 0;
}

/* The first function that is called on behalf of another CPU gives the interrupt its name. A raw tracepoint: a program with types may not look
 * at the address of a function. */
SEC("raw_tp/csd_function_entry")
int BPF_PROG(on_called, void *function) {
    struct intruders_cpu *cpu = here();
    struct intruders_frame *frame = cpu ? top(cpu) : 0;

    if (frame && frame->kind == intruders_call && !frame->function) frame->function = (__u64)function;
    return 0;
}

/* The timers of one interrupt: one that is known to have an owner gives it its name, else the first. */
SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_expiry, struct hrtimer *timer) {
    struct intruders_cpu *cpu = here();
    struct intruders_frame *frame = cpu ? top(cpu) : 0;
    const void *function, *start = timer;
    struct task_struct *sleeper;

    if (!frame || frame->kind != intruders_timer || frame->by.is) return 0;
    function = timer->function;
    if (function == &hrtimer_wakeup) {
        sleeper = BPF_CORE_READ((const struct hrtimer_sleeper *)start, task);
        frame->by.tid = BPF_CORE_READ(sleeper, pid);
        frame->by.pid = BPF_CORE_READ(sleeper, tgid);
        frame->by.is = sleeper ? intruders_is_known : 0;
        bpf_probe_read_kernel_str(frame->by.name, sizeof(frame->by.name), &sleeper->comm);
    } else if (function == &posix_timer_fn) {
        start -= bpf_core_field_offset(struct k_itimer, it.real.timer);
        frame->by.tid = frame->by.pid = BPF_CORE_READ((const struct k_itimer *)start, it_pid, numbers[0].nr);
        frame->by.is = intruders_is_known;
        frame->by.name[0] = 0;
    }
    if (!frame->function || frame->by.is) frame->function = (__u64)function;
    return 0;
}

/* On a CPU with nohz_full: why its tick goes on; one bit of TICK_DEP_MASK_, include/linux/tick.h. */
SEC("tp_btf/tick_stop")
int BPF_PROG(on_tick_stop, int is_stopped, int dependency) {
    struct intruders_cpu *cpu = here();

    if (!cpu || is_stopped) return 0;
    for (__u32 bit = 0; bit < intruders_tick_reasons; ++bit)
        if (dependency & (1 << bit)) ++cpu->tick_kept[bit];
    return 0;
}

/* Idle is nobody. */
static __always_inline void end_thread(struct intruders_cpu *cpu) {
    const __u64 now = bpf_ktime_get_ns();

    if (cpu->thread.id) account(&cpu->thread, now - cpu->thread.start);
    cpu->thread.start = now;
    cpu->thread.inner = 0;
    cpu->thread.function = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, int preempt, struct task_struct *prev, struct task_struct *next) {
    struct intruders_cpu *cpu = here();

    if (!cpu) return 0;
    find_thread(cpu, prev);
    end_thread(cpu);
    cpu->depth = 0; /* with PREEMPT_RT a softirq may be left for another task */
    cpu->thread.id = next->pid;
    if (next->pid) describe(&cpu->thread.by, next);
    return 0;
}

/* Each work of a kernel worker counts by itself. */
SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(on_work, struct work_struct *work) {
    struct intruders_cpu *cpu = here();

    if (!cpu) return 0;
    find_thread(cpu, bpf_get_current_task_btf());
    if (cpu->thread.function) end_thread(cpu);
    cpu->thread.function = (__u64)work->func;
    return 0;
}

static __always_inline void announce(__u32 target, int slot) {
    struct intruders_cpu *cpu = watched(target);
    struct task_struct *task = bpf_get_current_task_btf();

    if (!cpu) return;
    describe(&cpu->sent[slot], task);
    if (preempt_count_of(task) != ~0U && context_of(task) != in_task) cpu->sent[slot].is |= intruders_is_interrupt;
}

/* By the function that the interrupt will call: none for a reschedule. */
extern const void generic_smp_call_function_single_interrupt __ksym __weak;

static __always_inline int slot_of(const void *callback) {
    if (!callback) return 0;
    return callback == &generic_smp_call_function_single_interrupt ? 1 : 2;
}

SEC("tp_btf/ipi_send_cpu")
int BPF_PROG(on_sent, unsigned int cpu, unsigned long site, void *callback) {
    announce(cpu, slot_of(callback));
    return 0;
}

struct sending {
    const unsigned long long *mask;
    int slot;
};

static long announce_to(__u32 index, void *context) {
    const struct sending *sending = context;
    const __u32 cpu = listed[index & (intruders_most_cpus - 1)];
    __u64 word = 0;

    bpf_probe_read_kernel(&word, sizeof(word), sending->mask + cpu / 64);
    if (word >> cpu % 64 & 1) announce(cpu, sending->slot & 1);
    return 0;
}

SEC("tp_btf/ipi_send_cpumask")
int BPF_PROG(on_sent_to_all, const struct cpumask *mask, unsigned long site, void *callback) {
    struct sending sending = {(const void *)mask, slot_of(callback)};

    bpf_loop(listed_cpus, announce_to, &sending, 0);
    return 0;
}

char program_license[] SEC("license") = "GPL";
