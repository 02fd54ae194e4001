// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "inventory/task.hpp"
#include "machine/machine.hpp"
#include "planner/placements.hpp"
#include "policy/policy.hpp"
#include "status/findings.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace affinityctl::survey {

/// A process under a policy, as it is now.
struct ExaminedProcess {
    int pid = 0, parent = 0;
    std::string comm;
    std::size_t policy = 0; ///< index into the set
    std::vector<affinityd::inventory::Thread> threads;
    std::vector<unsigned> last_cpus;               ///< where each of these runs or ran last; empty: not known
    affinityd::CpuSet wanted;                      ///< all that its threads are to have, together
    std::map<unsigned, std::uint64_t> private_kib; ///< memory of its own, by node
};

/// The threads of a container, or else of a control group, as they are now; those under policy as they are to
/// be.
struct ExaminedGroup {
    enum class Kind { other, service, container, pod };
    Kind kind = Kind::other;
    std::string name;       ///< "kubelet.service", "docker:0b06980bee2d", "kubepods-podg1"
    std::string match;      ///< that names it in a policy: "{unit: \"kubelet.service\"}"
    affinityd::CpuSet cpus; ///< that its cgroup lets it have
    struct Thread {
        affinityd::CpuSet cpus;
        unsigned last_cpu = 0; ///< where it runs or ran last
    };
    std::vector<Thread> threads{};
};

/// A TCP socket that listens, and is the only one of its port.
struct ExaminedListener {
    std::uint16_t port = 0;
    std::vector<int> pids; ///< of processes under policy that have it open
};

/// How a CPU's frequency is chosen, in the kernel's words; "": not known.
struct FrequencyChoice {
    std::string governor, driver, preference;
};

/// A state in which an idle CPU sleeps.
struct IdleState {
    std::string name;
    std::uint64_t latency_us = 0; ///< to wake up
    std::uint64_t uses = 0;       ///< since boot
};

/// A machine at one moment, with policies worked out on it. A value that was not read is empty, and nothing
/// is found of it. References must outlive it.
struct Examined {
    const affinityd::policy::PolicySet& policies;
    const affinityd::machine::Machine& machine;
    const affinityd::planner::Placements& placements;
    std::vector<affinityd::planner::NicNames> nics{}; ///< that serve each policy, in the set's order
    std::vector<ExaminedProcess> processes{};
    std::vector<ExaminedGroup> groups{};
    std::vector<ExaminedListener> listeners{};
    int irqbalance = 0;               ///< its pid; 0: it does not run
    std::set<unsigned> spared_irqs{}; ///< that it was told to leave alone
    std::string scheduler{};          ///< a loaded sched_ext one; "": none
    int tuned = 0;                    ///< its pid; 0: it does not run
    std::string tuned_profile{};
    std::string tuned_cores{}; ///< that the profile isolates, as its settings have them
    std::map<unsigned, FrequencyChoice> frequencies{}; ///< by CPU
    std::vector<IdleState> idle_states{};              ///< that may be used
    std::uint64_t cpu_time = 0, stolen_time = 0;       ///< of all CPUs since boot, in the same unit
};

/// Findings that work against affinity, or make measuring moot.
using affinityd::status::Finding;

/// The findings, the gravest first. Pure.
[[nodiscard]] std::vector<Finding> examine(const Examined& machine);

/// For a policy: `["a", "b"]`, or `a` alone.
[[nodiscard]] std::string yaml_list(const std::vector<std::string>& texts);

/// From the text of /proc/PID/numa_maps: KiB that are the process's own and back no file, by node.
[[nodiscard]] std::map<unsigned, std::uint64_t> private_memory(std::string_view numa_maps);

} // namespace affinityctl::survey
