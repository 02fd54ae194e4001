// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "irq/irq.hpp"

#include <vector>

namespace affinityd::irq {

struct NumberedLabel {
    unsigned irq = 0;
    Label* label = nullptr; ///< of an interrupt of gve: a notification block (data_unknown) or management
};

/// Gives the notification blocks of gve their direction and queue: with N blocks the lower half serves the
/// transmit queues 0 .. N/2-1, the upper half the receive queues from 0 on, so the queue is the position in
/// its half. N is even; the management vector follows the blocks and so says N even where blocks are missing
/// from an excerpt. Blocks of several interfaces, which the old labels do not tell apart, are taken apart by
/// their interrupt numbers. Source: drivers/net/ethernet/google/gve, gve_tx_idx_to_ntfy, gve_rx_idx_to_ntfy.
void settle_gve(std::vector<NumberedLabel> labels);

} // namespace affinityd::irq
