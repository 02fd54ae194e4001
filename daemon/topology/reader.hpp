// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "topology/topology.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::host {
class Dir;
class Root;
} // namespace affinityd::host

namespace affinityd::topology {

/// Reads /sys/devices/system/{cpu,node} below the root. Missing, unreadable and odd files (ids of -1, offline
/// CPU 0, NUL padding) are values, not faults; an Error only if no CPU can be found at all. Source:
/// Documentation/admin-guide/cputopology.rst, Documentation/ABI/stable/sysfs-devices-{system-cpu,node}.
[[nodiscard]] Result<Topology> read_topology(const host::Root& root);

/// CPUs set apart at boot (isolcpus=domain), and those that cpuset partitions isolate now, which no kernel
/// adds to the first. Source: Documentation/admin-guide/cgroup-v2.rst.
[[nodiscard]] CpuSet read_isolated(const host::Root& root);

/// CPUs that are online now: /sys/devices/system/cpu/online alone. No value: it cannot be read.
[[nodiscard]] std::optional<CpuSet> read_online(const host::Root& root);

/// The memory of each node of the topology that is free, or has files which the kernel can drop, in bytes; no
/// value: not recorded. Source: Documentation/ABI/stable/sysfs-devices-node, meminfo.
[[nodiscard]] std::vector<std::optional<std::uint64_t>> read_room(const host::Root& root,
                                                                  const Topology& topology);

/// The name of the CPUs, by the first of them: "Intel(R) Xeon(R) Gold 6444Y"; of arm64, which has no
/// names, "arm implementer 0x41 part 0xd0c". "": the machine does not say. Source: /proc/cpuinfo,
/// arch/*/kernel/**/cpuinfo.c and proc.c.
[[nodiscard]] std::string read_cpu_model(const host::Root& root);

/// The greatest CPU or node number that is read: eight times the most that a kernel can be built for. Bounds
/// the memory that a hostile recording can take.
constexpr unsigned greatest_number = 65535;

/// The numbers of the entries called `prefix` and a number, ascending. An Error: they cannot be listed.
[[nodiscard]] Result<std::vector<unsigned>> numbered(const host::Dir& dir, std::string_view prefix);

/// A PCI function and the CPUs near it.
struct PciDevice {
    std::string address;          ///< "0000:5e:00.0"
    std::string driver;           ///< "" if none is bound
    unsigned class_code = 0;      ///< 24 bits: class, subclass, programming interface
    std::optional<unsigned> node; ///< NUMA node; no value: not known (the kernel's -1)
    CpuSet local_cpus;            ///< as the kernel says, offline ones included; empty: not known
};

/// The functions whose place matters to a placement: storage, network, display and accelerators, by address.
/// Source: Documentation/ABI/testing/sysfs-bus-pci. A machine without PCI has none.
[[nodiscard]] Result<std::vector<PciDevice>> read_pci_devices(const host::Root& root);

/// "NVMe", "SATA", "Ethernet", "GPU", "accelerator", ...; "" for classes that read_pci_devices passes over.
[[nodiscard]] std::string_view pci_class_name(unsigned class_code);

} // namespace affinityd::topology
