// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace affinityd::irq {

class LabelTable;

/// The purpose of an interrupt line for a NIC, as far as its label tells.
enum class Kind {
    rx,
    tx,
    txrx,         ///< data queue
    control,      ///< a NIC's line that is no data queue: link, mailbox, async events, flow director
    none,         ///< a NIC's line that no queue of the interface uses, or no NIC's line at all
    data_unknown, ///< carries data, but which queue or direction cannot be told from the label
};

[[nodiscard]] constexpr bool is_data(Kind kind) { return kind != Kind::control && kind != Kind::none; }

/// An interrupt's label, read by the table of driver patterns. Names are as the label has
/// them.
struct Label {
    std::string device;               ///< interface name, or "" if the label does not hold one
    std::string pci;                  ///< "0000:41:00.0", or ""
    std::string virtio;               ///< "virtio3", or ""
    std::string platform;             ///< "15100000.ethernet", or ""
    std::optional<unsigned> queue;    ///< number in the label
    std::optional<unsigned> rx_queue; ///< the kernel's receive queue where it has another number
    std::optional<unsigned> tx_queue; ///< the kernel's transmit queue, likewise
    Kind kind = Kind::none;
    bool is_nic = false;       ///< the line belongs to a network interface
    bool sub_function = false; ///< of sub-functions of the PCI function, not of itself
    std::string driver;        ///< driver the pattern belongs to, or ""
};

/// A numbered line of the interrupt table with what /proc/irq/N adds.
struct Irq {
    unsigned number = 0;
    std::string chip; ///< "IR-PCI-MSIX-0000:41:00.0", "PCI-MSI", ...
    std::string pci;  ///< PCI function that the chip name gives (per-device MSI domains), or ""
    std::vector<std::string>
        actions; ///< names of the handlers; several on a shared line; empty: none requested
    std::vector<std::uint64_t> counts; ///< per column of the table; see InterruptTable::cpus
    std::optional<CpuSet> requested;   ///< smp_affinity_list
    std::optional<CpuSet> effective;   ///< effective_affinity_list; empty set until first started
    std::optional<CpuSet> hint;        ///< affinity_hint; no value if absent or all zero
    bool fixed = false;                ///< its controller refuses every mask
    bool writable = true;     ///< false: the affinity file says it can never change (mode 0444, Linux 6.12+)
    std::vector<int> threads; ///< tids of irq/N-name kernel threads; filled by attach_threads
};

/// /proc/interrupts as a value.
struct InterruptTable {
    std::vector<unsigned> cpus; ///< the CPU of each counter column (online CPUs by the header)
    std::vector<Irq> irqs;      ///< in the order of the table
    std::vector<std::pair<std::string, std::uint64_t>> special; ///< NMI, LOC, ...: key and sum over CPUs
    std::shared_ptr<const LabelTable> labels{}; ///< by which handlers are classified; null: none is known
    [[nodiscard]] const Irq* find(unsigned number) const;
};

} // namespace affinityd::irq
