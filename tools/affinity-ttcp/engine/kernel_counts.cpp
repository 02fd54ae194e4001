// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/kernel_counts.hpp"

#include <algorithm>
#include <string_view>

namespace affinityd::ttcp {

namespace {

using Counts = std::vector<std::pair<std::string, std::uint64_t>>;

/// Of the kinds that `wanted` names. No value if none is there, or one went back (a counter of 32 bits began
/// anew).
template <class Wanted>
std::optional<std::uint64_t> grown_of(const Counts& first, const Counts& last, Wanted wanted) {
    std::optional<std::uint64_t> sum;
    for (const auto& [kind, now] : last) {
        if (!wanted(kind)) continue;
        const auto before = std::ranges::find(first, kind, &Counts::value_type::first);
        if (before == first.end() || now < before->second) return std::nullopt;
        sum = sum.value_or(0) + (now - before->second);
    }
    return sum;
}

bool is_ipi(std::string_view kind) { return kind == "RES" || kind == "CAL" || kind.starts_with("IPI"); }

} // namespace

KernelCounts counts_between(const Activity& first, const Activity& last) {
    KernelCounts counts;
    for (const auto& line : lines_between(first, last))
        counts.interrupts += line.count;
    counts.ipis = grown_of(first.interrupts.special, last.interrupts.special, is_ipi);
    const auto of = [&](std::string_view kind) {
        return grown_of(first.softirqs, last.softirqs, [&](const std::string& one) { return one == kind; });
    };
    counts.net_rx = of("NET_RX");
    counts.net_tx = of("NET_TX");
    return counts;
}

bool tells_interrupt_time(const Activity& activity) {
    return std::ranges::any_of(activity.cpus, [](const CpuTime& cpu) { return cpu.irq > 0; });
}

} // namespace affinityd::ttcp
