// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/intruders/bpf/intruders.h"
#include "base/cpu_set.hpp"
#include "base/error.hpp"
#include "host/root.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityctl {

using IntruderKind = intruders_kind;

/// A thread that interrupts, sends interrupts, or owns a timer.
struct IntruderTask {
    int tid = 0, pid = 0;
    std::string name; ///< as last seen; any bytes; "": not known
    unsigned cpu = 0; ///< where it sent from
    bool is_kernel = false;
    bool is_bound = false;     ///< the kernel lets nobody move it
    bool is_interrupt = false; ///< not the task, but an interrupt in its place
    friend bool operator==(const IntruderTask&, const IntruderTask&) = default;
};

/// All that one source did on one CPU.
struct Intrusion {
    IntruderKind kind = intruders_thread;
    unsigned cpu = 0;
    unsigned id = 0;                    ///< number of an interrupt or softirq; tid of a thread
    std::string function;               ///< of a timer, call or worker; text of another line; "": not known
    std::optional<IntruderTask> task{}; ///< the thread itself; a sender or owner, if it is known
    std::uint64_t count = 0;
    std::uint64_t total_ns = 0, longest_ns = 0; ///< without the intruders that interrupted it
    std::array<unsigned long long, intruders_lengths>
        lengths{}; ///< how many were so long: intruders_length_of()
};

/// All that ran on the watched CPUs, programs included.
struct Intrusions {
    double seconds = 0;
    bool has_lengths = true;                   ///< false: of threads the total is known, of others nothing
    std::vector<Intrusion> all;                ///< unordered
    std::uint64_t lost = 0;                    ///< for which the table had no room
    std::vector<std::string> notes;            ///< sentences about what could not be seen
    std::map<unsigned, std::string> tick_kept; ///< by CPU: why a tick with nohz_full went on most often
    std::map<unsigned, double> busy;           ///< 0..1 of the time, by online CPU
};

/// Sees what runs on some CPUs, from begin() to take(), each of which is called once. Changes nothing.
class IntruderWatch {
  public:
    /// By BPF programs at tracepoints, each of which may be missing (a note tells). An Error says why the
    /// kernel allows none. Source: bpf/intruders.bpf.c.
    static affinityd::Result<std::unique_ptr<IntruderWatch>> by_events(const affinityd::host::Root& root,
                                                                       const affinityd::CpuSet& cpus);
    /// By differences of the kernel's counters, as any user may read them. `before`: where begin() reads:
    /// `root`, or an earlier recording of the same machine.
    static std::unique_ptr<IntruderWatch> by_counters(const affinityd::host::Root& before,
                                                      const affinityd::host::Root& root,
                                                      const affinityd::CpuSet& cpus);
    IntruderWatch() = default;
    IntruderWatch(const IntruderWatch&) = delete;
    IntruderWatch& operator=(const IntruderWatch&) = delete;
    virtual ~IntruderWatch() = default;
    virtual void begin() = 0;
    [[nodiscard]] virtual affinityd::Result<Intrusions> take() = 0;
};

/// A table of counters by CPU: /proc/interrupts, /proc/softirqs.
struct CounterTable {
    struct Row {
        std::map<unsigned, std::uint64_t> counts; ///< by CPU
        std::string text;                         ///< after the counters
    };
    std::map<std::string, Row, std::less<>> rows; ///< by the word before the colon
};
[[nodiscard]] CounterTable parse_counters(std::string_view text);
/// The same of a file of /proc, which has megabytes where CPUs are many. Empty: it cannot be read.
[[nodiscard]] CounterTable read_counters(const affinityd::host::Root& root, const std::string& name);

/// The rows of a table of interrupts or softirqs that rose on these CPUs.
[[nodiscard]] std::vector<Intrusion> risen_rows(const CounterTable& before, const CounterTable& after,
                                                const affinityd::CpuSet& cpus);

/// The share of the time that each CPU was busy, by two texts of /proc/stat.
[[nodiscard]] std::map<unsigned, double> busy_between(std::string_view before, std::string_view after);

/// The vectors of softirqs, by number. Source: include/linux/interrupt.h.
[[nodiscard]] std::string softirq_name(unsigned vector);

} // namespace affinityctl
