// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "irq/irq.hpp"

#include <optional>
#include <span>
#include <string_view>

namespace affinityd::irq {

/// The interrupt that a kernel thread handles, by its name: "irq/24-eth0-TxRx-0", "irq/24-s-eth0" for a
/// second handler. Threaded handlers are the rule with PREEMPT_RT and some drivers' choice elsewhere. Source:
/// kernel/irq/manage.c, setup_irq_thread.
[[nodiscard]] std::optional<unsigned> parse_irq_thread(std::string_view comm);

/// A kernel thread as the inventory has it; the name stays the caller's.
struct NamedThread {
    int tid = 0;
    std::string_view comm;
};

/// Fills Irq::threads, ascending, replacing what was there. Only kernel threads may be handed in: anybody can
/// take such a name.
void attach_threads(InterruptTable& table, std::span<const NamedThread> threads);

} // namespace affinityd::irq
