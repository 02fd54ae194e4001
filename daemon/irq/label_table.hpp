// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "irq/irq.hpp"

#include <span>
#include <string_view>

namespace affinityd::irq {

/// One form of label. In the pattern, which is matched over the whole label and without regard to the case of
/// letters: {if} an interface name; {nic} the same, but only if the name looks like an interface's or is
/// known to be one; {pci} "0000:41:00.0"; {virtio} "virtio3"; {soc} "15100000.ethernet"; {q} queue; {t}
/// transmit queue; {n} a number that is no queue.
struct LabelPattern {
    /// Some labels belong to a NIC only if other lines or the device tree say so.
    enum class Claim { sure, if_nic };

    std::string_view pattern;
    Kind kind;
    std::string_view driver; ///< "" if several drivers use the form
    Claim claim = Claim::sure;
};

/// All forms, special ones before general ones: the first that fits counts.
[[nodiscard]] std::span<const LabelPattern> label_patterns();

} // namespace affinityd::irq
