// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "irq/irq.hpp"

#include <span>
#include <string>
#include <vector>

namespace affinityd::irq {

/// A network interface as the device tree has it. All fields but the name may be
/// empty.
struct Device {
    std::string name;
    std::string driver;
    std::string pci;
    std::string virtio;
    std::string platform;
    std::vector<unsigned> irqs; ///< its own, ascending: msi_irqs, or irqs of an auxiliary device
    bool sub_function = false;  ///< of the PCI function
};

/// A handler on a line, classified.
struct Line {
    unsigned irq = 0;
    std::string action;
    Label label;
    bool shared = false; ///< other handlers are on the line
    bool known = false;  ///< its label fits a form of the table
};

/// Labels seen together: what one label alone cannot say. The bare name of an interface is the control vector
/// where others carry its data; unknown labels of a device's own list carry data; virtioN-config is a NIC's
/// where virtioN has queues; an iavf vector without PCI function belongs to the mailbox before it. The same
/// handler named twice on a line counts once. In the order of `lines`; lines without handlers are left out,
/// handlers of other devices have Kind::none. `table`: for its forms of labels, and its number of CPUs.
[[nodiscard]] std::vector<Line> classify(std::span<const Irq* const> lines, const InterruptTable& table,
                                         std::span<const Device> known = {});
[[nodiscard]] std::vector<Line> classify(const InterruptTable& table, std::span<const Device> known = {});

} // namespace affinityd::irq
