// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "irq/irq.hpp"
#include "irq/label_table.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::irq {

/// The first pattern that fits a label, and what it read.
struct LabelMatch {
    const LabelPattern* pattern = nullptr;
    Label label;
};

/// As parse_label, with the names that are known to be interfaces (for "{nic}") and the pattern that fitted.
[[nodiscard]] std::optional<LabelMatch> match_label(std::string_view action,
                                                    const std::vector<std::string>& interfaces);

/// Names that the kernel, udev and distributions give to Ethernet interfaces: eth0, enp5s0f1np1, eno1, ens3,
/// enx..., em1, p2p1, lan1, wan0, net1, ib0. Wireless and virtual names are none. Source:
/// systemd.net-naming-scheme(7).
[[nodiscard]] bool looks_like_interface(std::string_view name);

} // namespace affinityd::irq
