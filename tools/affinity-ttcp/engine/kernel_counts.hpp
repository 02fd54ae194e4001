// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/activity.hpp"

#include <cstdint>
#include <optional>

namespace affinityd::ttcp {

/// What the kernel counted between two moments, of the whole machine, whoever caused it.
struct KernelCounts {
    std::uint64_t interrupts = 0; ///< of numbered lines: devices
    /// Interrupts that CPUs sent each other. x86: rescheduling and function calls (TLB shootdowns are among
    /// these, arch/x86/kernel/irq.c); ARM and RISC-V: IPI0 and so on. No value: this machine does not count
    /// them.
    std::optional<std::uint64_t> ipis;
    std::optional<std::uint64_t> net_rx, net_tx; ///< softirqs, /proc/softirqs
};
[[nodiscard]] KernelCounts counts_between(const Activity& first, const Activity& last);

/// Whether this kernel measures the time in interrupts (CONFIG_IRQ_TIME_ACCOUNTING, or exact accounting as on
/// s390). Without it a handler's time is that of whatever it interrupted, and the column of /proc/stat stays
/// 0 however many interrupts come, because the timer tick, which samples, never interrupts a handler.
[[nodiscard]] bool tells_interrupt_time(const Activity& activity);

} // namespace affinityd::ttcp
