// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "irq/irq.hpp"
#include "machine/vectors.hpp"
#include "netdev/nic.hpp"

#include <span>
#include <vector>

namespace affinityd::machine {

/// For each interface the lines that may be its own at all, in the table's order: those that its device or
/// netlink names, and those with a handler whose label holds its name, or its device's. A coarse choice, in
/// one go over the table for all interfaces.
[[nodiscard]] std::vector<std::vector<const irq::Irq*>> possible_lines(std::span<const netdev::Nic> nics,
                                                                       const irq::InterruptTable& table);
/// An interface's vectors among these lines.
[[nodiscard]] std::vector<Vector> vectors_among(const std::vector<const irq::Irq*>& lines,
                                                const netdev::Nic& nic, std::size_t cpu_count);

} // namespace affinityd::machine
