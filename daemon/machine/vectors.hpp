// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "irq/classify.hpp"
#include "irq/irq.hpp"
#include "machine/subject.hpp"
#include "netdev/nic.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::machine {

/// How it is known that an interrupt belongs to an interface; the most reliable first.
enum class Source {
    netlink,  ///< netdev family: queue -> NAPI -> IRQ
    msi_irqs, ///< the device's own list
    label,    ///< only the label in the interrupt table
    legacy,   ///< only device/irq
};

[[nodiscard]] std::string_view to_string(Source source);
[[nodiscard]] std::string_view to_string(irq::Kind kind); ///< "" for data_unknown

/// An interrupt of an interface.
struct Vector {
    unsigned irq = 0;
    irq::Kind kind = irq::Kind::none;
    /// The kernel's queue number: of rx-N, or of tx-N if it only transmits; no value: all queues, or none.
    std::optional<unsigned> queue;
    /// The transmit queue, where a vector of both directions serves one of another number.
    std::optional<unsigned> tx_queue;
    std::string label; ///< the handler's name, "" if none is requested
    Source source = Source::label;
    bool shared = false;  ///< other devices are on the line
    bool clash = false;   ///< the label names another queue than netlink does, which is believed
    unsigned ordinal = 0; ///< place among the interface's vectors of this label: two may have the same
    bool known = true;    ///< its label fits a form of the table, or netlink tells its queue

    friend bool operator==(const Vector&, const Vector&) = default;
};

/// The vector's interrupt, as a subject.
[[nodiscard]] IrqMask irq_subject(const netdev::Nic& nic, const Vector& vector);

/// The facts about an interface that the irq room needs to read labels.
[[nodiscard]] irq::Device to_device(const netdev::Nic& nic);

/// The interrupts of each interface, ascending by number. Stacked interfaces have none: ask for their lower
/// ones. A line of several devices is shared.
[[nodiscard]] std::vector<std::vector<Vector>> vectors_of_all(std::span<const netdev::Nic> nics,
                                                              const irq::InterruptTable& table);
/// The vectors of one interface, by itself.
[[nodiscard]] std::vector<Vector> nic_vectors(const netdev::Nic& nic, const irq::InterruptTable& table);

} // namespace affinityd::machine
