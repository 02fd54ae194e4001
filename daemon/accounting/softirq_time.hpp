// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string_view>

namespace affinityd::accounting {

/// Seconds of softirq work that was for the network: the machine's softirq time in /proc/stat, divided as
/// the counts in /proc/softirqs are. No value if either text lacks its figures.
/// Source: proc_stat(5), Documentation/filesystems/proc.rst.
[[nodiscard]] std::optional<double> network_softirq_seconds(std::string_view stat, std::string_view softirqs,
                                                            double ticks_per_second);

/// Seconds that each CPU has spent in interrupts and softirqs, by its number, out of /proc/stat. Source:
/// proc_stat(5), fields irq and softirq.
[[nodiscard]] std::map<unsigned, double> interrupt_seconds(std::string_view stat, double ticks_per_second);

} // namespace affinityd::accounting
