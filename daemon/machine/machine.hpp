// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/descriptors.hpp"
#include "irq/irq.hpp"
#include "machine/vectors.hpp"
#include "netdev/nic.hpp"
#include "policy/diagnostic.hpp"
#include "topology/latencies.hpp"
#include "topology/topology.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::machine {

/// The latencies between the CPUs of a machine, if they were measured on it.
struct KnownLatencies {
    std::optional<topology::LatencyLevel> level; ///< no value: none
    std::string unused;    ///< why what is kept does not count; "": it does, or nothing is kept
    std::int64_t time = 0; ///< when they were measured, seconds since 1970; 0: not known
};

/// The latencies that are kept, as it counts on this machine. `model`: of its CPUs, as
/// topology::read_cpu_model() has it.
[[nodiscard]] KnownLatencies latencies_here(const topology::Latencies& kept,
                                            const topology::Topology& topology, std::string_view model);

/// The hardware as it was read, as one value. Tasks are not part of it: they come one by one. Nor are the
/// masks of queues as they are now: these are read when they are compared with what is wanted.
struct Machine {
    topology::Topology topology;
    std::vector<netdev::Nic> nics;
    irq::InterruptTable irqs;
    /// rps_sock_flow_entries; no value: the kernel, or this network namespace, has none.
    std::optional<std::uint32_t> flow_entries = std::nullopt;
    /// Threads that do the work of queues and interrupts, ascending by tid.
    std::vector<inventory::KernelThread> kernel_threads = {};
    /// The vectors of each interface, by its name: filled by link_vectors().
    std::map<std::string, std::vector<Vector>, std::less<>> vectors = {};
    KnownLatencies latencies = {};                       ///< by use_latencies()
    std::vector<policy::Diagnostic> label_findings = {}; ///< about files of forms of labels
    /// Devices, in sysfs, of interfaces that were moved into other network namespaces.
    std::set<std::string> moved = {};
    bool follows_pods = false; ///< a policy asks for topology.pods, so that these are read again
    /// Policies that cannot steer; read_machine() does not try.
    struct Unsteered {
        bool all = false;             ///< BPF was refused
        std::set<std::string> owners; ///< policies, as another program steers in their network namespace
        friend bool operator==(const Unsteered&, const Unsteered&) = default;
        [[nodiscard]] bool contains(const std::string& policy) const {
            return all || owners.contains(policy);
        }
    } unsteered = {};

    /// By any of its names; nullptr: none has that.
    [[nodiscard]] const netdev::Nic* nic(std::string_view name) const;
    [[nodiscard]] std::span<const Vector> vectors_of(std::string_view nic) const;
};

/// They become a level of the topology; CPUs that were not measured are in what is left of their cache
/// groups.
void use_latencies(Machine& machine, KnownLatencies latencies);

/// Lines with a handler, as subjects, by number: that of a NIC's vector is the same as for its queue.
[[nodiscard]] std::map<unsigned, IrqMask> named_irqs(const Machine& machine);

/// Works out which vectors each interface has. Call it after `nics` or `irqs` have changed.
void link_vectors(Machine& machine);

/// CPUs near one interface, cut to the online ones; all online CPUs if its place is unknown, or if none of
/// them is online.
[[nodiscard]] CpuSet near_cpus(const Machine& machine, const netdev::Nic& nic);

/// The same of every interface, by each of its names, and of one that is on top of others (a bond) near any
/// of the physical ones: for CPU-set expressions.
[[nodiscard]] std::map<std::string, CpuSet, std::less<>> nic_cpus(const Machine& machine);

/// Members of `allowed` that may stand in for `cpu`, nearest first: its core, its cache group, its node, the
/// rest. Online CPUs only, each once, never `cpu` itself.
[[nodiscard]] std::vector<unsigned> nearest_others(const topology::Topology& topology, unsigned cpu,
                                                   const CpuSet& allowed);

} // namespace affinityd::machine
