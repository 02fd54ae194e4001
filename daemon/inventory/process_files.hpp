// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"
#include "host/root.hpp"
#include "inventory/task.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityd::inventory {

/// The part that is used of a /proc/PID/stat or /proc/PID/task/TID/stat line; proc_pid_stat(5).
struct StatLine {
    int id = 0; ///< field 1: the process or thread
    std::string_view
        comm;           ///< field 2 without its parentheses, as the kernel escaped it; points into the text
    char state = '?';   ///< field 3
    int parent = 0;     ///< field 4: the parent's process id, 0 if none
    int session = 0;    ///< field 6: getsid(2), 0 if it is not of this PID namespace
    unsigned flags = 0; ///< field 9: PF_ bits
    long threads = 0;   ///< field 20
    std::uint64_t start_time = 0; ///< field 22, clock ticks since boot
    /// True: the process waits to be collected ('Z') or is just leaving ('X'), and cannot be placed.
    [[nodiscard]] bool is_dead() const { return state == 'Z' || state == 'X' || state == 'x'; }
};

/// The name may hold spaces and parentheses, so it reaches from the first '(' to the last ')'. No value: no
/// such line.
[[nodiscard]] std::optional<StatLine> parse_stat(std::string_view text);

/// The name as the task has it: the kernel writes a line end as "\n" and a backslash as "\\"
/// (proc_task_name(), fs/proc/array.c).
[[nodiscard]] std::string unescape_comm(std::string_view text);

using StatBuffer = std::array<char, 2048>; ///< a line has at most 64 bytes of name and 52 numbers

/// The line in `path` below `dir`, read into `buffer` (the line points into it). No value: the task is gone,
/// or the text is no such line. An Error: the file is there and cannot be opened or read (EMFILE, EACCES).
[[nodiscard]] Result<std::optional<StatLine>> read_stat(const host::Dir& dir, const std::string& path,
                                                        StatBuffer& buffer);

/// The present mask of a thread; empty if it cannot be read. On this machine it is what sched_getaffinity(2)
/// answers, so without offline CPUs; in a recording it is Cpus_allowed_list.
[[nodiscard]] CpuSet read_mask(const host::Root& root, int pid, int tid);

/// A thread of `pid` from its line, with its present mask.
[[nodiscard]] Thread make_thread(const host::Root& root, int pid, const StatLine& line);

/// The processes in a control group, by its path as in /proc/PID/cgroup. None: it is gone, or threaded (its
/// domain lists them). Source: cgroup-v2.rst, cgroup.procs.
[[nodiscard]] Result<std::vector<int>> processes_in(const host::Dir& sys, const std::string& group);
/// Controllers of all kinds share one hierarchy (cgroup v2), as cpusets of units need it.
inline bool has_unified_cgroups(const host::Dir& sys) { return sys.exists("fs/cgroup/cgroup.controllers"); }

/// The path that says to which unit or container a process belongs, from the text of /proc/PID/cgroup: the
/// unified hierarchy's if it is not the root there, else systemd's own hierarchy's (hosts with cgroup v1 or
/// both), else "/". cgroups(7).
[[nodiscard]] std::string cgroup_of(std::string_view text);

/// The inode that identifies a process's namespace, namespaces(7). `process`: "self" or a number; `kind`:
/// "net", "pid". 0: the process is gone, or may not be looked at.
[[nodiscard]] std::uint64_t name_space(const host::Root& root, const std::string& process,
                                       const std::string& kind);

/// True if the process is the first one of a PID namespace below ours, to which others there are given when
/// their parents end: NSpid of /proc/PID/status, pid_namespaces(7).
[[nodiscard]] bool is_namespace_init(const host::Root& root, int pid);

/// A thread of a process; no value: it is gone. An Error: it cannot be read (EMFILE), so nothing is known of
/// it. On this machine `allowed` is what sched_getaffinity(2) answers, so without offline CPUs. In a
/// recording it is Cpus_allowed_list.
[[nodiscard]] Result<std::optional<Thread>> read_thread(const host::Root& root, int pid, int tid);

/// All threads of a process, the main thread first; empty if the process is gone. In one go: not for the
/// event loop, where a process may have thousands.
[[nodiscard]] Result<std::vector<Thread>> read_threads(const host::Root& root, int pid);

/// The present mask with offline CPUs (Cpus_allowed_list of /proc/PID/task/TID/status): what has to be put
/// back later.
[[nodiscard]] std::optional<CpuSet> read_allowed(const host::Root& root, int pid, int tid);

/// True if the process, by its main thread's id, has a thread that runs. A main thread may end before the
/// others, and when one of these runs another program, it takes over the main thread's number and start time.
[[nodiscard]] bool lives_on(const host::Root& root, const TaskId& process);

/// Parent of a process, 0 for none; no value if the process is gone.
[[nodiscard]] std::optional<int> read_parent(const host::Root& root, int pid);

/// Parent, grandparent, ... of a process whose parent is `parent`: at most 64, which also ends a loop in a
/// recording.
[[nodiscard]] std::vector<int> read_ancestors(const host::Root& root, int parent);

/// The user who started a process, also where it runs with another one's rights (Uid of its status file, the
/// first number); no value if it is gone.
[[nodiscard]] std::optional<unsigned> read_real_user(const host::Root& root, int pid);

/// The memory that a process has, in bytes, without huge pages of hugetlbfs (VmRSS of its status file); no
/// value: it is gone, or a kernel thread.
[[nodiscard]] std::optional<std::uint64_t> read_resident(const host::Root& root, int pid);

/// The private memory of a process that it can write to and that belongs to no file: ranges of addresses, of
/// /proc/PID/maps. Waits for the lock of its memory map. Empty: it is gone.
[[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint64_t>> own_memory(const host::Root& root,
                                                                              int pid);

/// The process that a thread belongs to (Tgid of its status file); no value if the thread is gone.
[[nodiscard]] std::optional<int> read_process_id(const host::Root& root, int tid);

/// The thread of a process that its own pid namespace, as a container has one, knows by the number `own`; no
/// value: it has none, or ended meanwhile, or is one of very many. Threads are numbered in the order of their
/// births here and there: it is looked for by halves, and among the latest 64 if numbers began anew since. In
/// a process with more than 1024 threads the first of these are looked at. Takes a millisecond at most.
[[nodiscard]] std::optional<int> thread_by_own_number(const host::Root& root, int pid, int own);

/// The counts of the scheduler for one thread since its birth.
struct RunRecord {
    std::uint64_t start_time = 0; ///< clock ticks since boot: tells a later thread of the same number apart
    int cpu = 0;                  ///< where it runs or ran last: field 39 of proc_pid_stat(5)
    std::uint64_t run_ns =
        0; ///< time on a CPU: /proc/PID/task/TID/schedstat, else utime + stime in clock ticks
    std::optional<std::uint64_t>
        migrations; ///< se.nr_migrations of /proc/PID/task/TID/sched; a kernel may be built without
};

/// No value: the thread is gone, or the text is no such line.
[[nodiscard]] std::optional<RunRecord> read_run_record(const host::Root& root, int pid, int tid);

/// For how long a thread ran, and waited for a CPU.
struct SchedTime {
    std::uint64_t run_ns = 0;
    std::uint64_t wait_ns = 0;
};

/// Since its birth. No value: it is gone, or the kernel does not count that (CONFIG_SCHED_INFO).
[[nodiscard]] std::optional<SchedTime> read_sched_time(const host::Root& root, int pid, int tid);

/// Readers of the texts, pure. `ticks`: clock ticks per second, > 0.
[[nodiscard]] std::optional<RunRecord> parse_run_record(std::string_view stat, long ticks);
/// The first two numbers of schedstat, Documentation/scheduler/sched-stats.rst.
[[nodiscard]] std::optional<SchedTime> parse_sched_time(std::string_view schedstat);
[[nodiscard]] std::optional<std::uint64_t> parse_migrations(std::string_view sched);

} // namespace affinityd::inventory
