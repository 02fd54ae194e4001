// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/intruders/watch.hpp"
#include "affinityctl/present/document.hpp"
#include "base/cpu_set.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace affinityctl {

/// An interrupt line of a device.
struct HeldLine {
    std::string label;
    std::string policy;      ///< that holds its mask; "": none
    bool is_managed = false; ///< the kernel lets nobody move it
};

/// The facts by which an intruder is told from the program, and its mend found.
struct IntruderFacts {
    std::string subject; ///< "policy web", "CPUs 2-3"
    affinityd::CpuSet cpus;
    std::set<int> own; ///< processes that are at home there
    affinityd::CpuSet
        guessed; ///< where the user thread that ran longest is taken for the program, if no own one ran
    std::map<unsigned, HeldLine> lines; ///< by interrupt number
    affinityd::CpuSet nohz_full;
    std::map<unsigned, affinityd::CpuSet> siblings; ///< by CPU: others of its core
};

/// One source, on all CPUs that it interrupted.
struct Intruder {
    std::string kind;   ///< irq, softirq, tick, timer, ipi, thread, kthread, nmi, other
    std::string source; ///< "36 virtio1-req.0", "NET_RX", "stress 812"
    std::string from;   ///< the sender of an IPI, the owner of a timer; "": not known, or none
    std::string mend;
    int pid = 0; ///< of the thread, the sender or the owner; 0: none
    affinityd::CpuSet from_cpus, cpus;
    std::uint64_t count = 0, total_ns = 0, longest_ns = 0;
};

/// One watched CPU.
struct QuietCpu {
    unsigned cpu = 0;
    std::string program;                         ///< "web 812"; "": none ran
    std::map<std::string, std::uint64_t> counts; ///< by kind of intruder
    std::uint64_t noise_ns = 0, longest_ns = 0;  ///< of all intruders
};

struct IntruderReport {
    std::vector<Intruder> intruders; ///< longest total first, then the greatest count
    std::vector<QuietCpu> cpus;
    std::uint64_t longest_ns = 0;
};

/// Pure.
[[nodiscard]] IntruderReport find_intruders(const Intrusions& seen, const IntruderFacts& facts);

/// A line for each source and CPU. `over`: the limit that no intruder may be above; the exit code tells.
[[nodiscard]] Document intruders_document(const Intrusions& seen, const IntruderFacts& facts,
                                          std::optional<std::chrono::nanoseconds> over);
extern const Fields intruders_answer;

} // namespace affinityctl
