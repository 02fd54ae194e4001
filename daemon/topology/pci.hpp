// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::topology {

/// A PCI function and the CPUs near it.
struct PciDevice {
    std::string address;          ///< "0000:5e:00.0"
    std::string driver;           ///< "" if none is bound
    unsigned class_code = 0;      ///< 24 bits: class, subclass, programming interface
    std::optional<unsigned> node; ///< NUMA node; no value: not known (the kernel's -1)
    CpuSet local_cpus;            ///< as the kernel says, offline ones included; empty: not known
};

/// Those functions whose place matters to a placement: storage, network, display and accelerators, by
/// address. Source: Documentation/ABI/testing/sysfs-bus-pci. A machine without PCI has none.
[[nodiscard]] Result<std::vector<PciDevice>> read_pci_devices(const host::Root& root);

/// "NVMe", "SATA", "Ethernet", "GPU", "accelerator", ...; "" for classes that read_pci_devices passes over.
[[nodiscard]] std::string_view pci_class_name(unsigned class_code);

} // namespace affinityd::topology
