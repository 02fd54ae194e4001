// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "irq/irq.hpp"

#include <span>
#include <string>
#include <vector>

namespace affinityd::irq {

/// What is known of a network interface from elsewhere (the device tree). All fields but the name may be
/// empty.
struct Device {
    std::string name;
    std::string driver;
    std::string pci;
    std::string virtio;
    std::string platform;
    std::vector<unsigned> irqs; ///< device/msi_irqs
};

/// One handler on one line, classified.
struct Line {
    unsigned irq = 0;
    std::string action;
    Label label;
    bool shared = false; ///< other handlers are on the line
};

/// Labels seen together: what one label alone cannot say. A bare interface name is the control vector where
/// queue vectors stand beside it; virtioN-config is a NIC's where virtioN has queues; tg3's numbers are off
/// by one; gve's blocks are transmit queues in the lower half; an iavf vector without PCI function belongs to
/// the mailbox before it. The same handler named twice on a line counts once. In the order of `lines`; lines
/// without handlers are left out, handlers of other devices have Kind::none.
[[nodiscard]] std::vector<Line> classify(std::span<const Irq* const> lines,
                                         std::span<const Device> known = {}, std::size_t cpu_count = 0);
[[nodiscard]] std::vector<Line> classify(const InterruptTable& table, std::span<const Device> known = {});

} // namespace affinityd::irq
