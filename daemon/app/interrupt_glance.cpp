// SPDX-License-Identifier: Apache-2.0
#include "app/interrupt_glance.hpp"

namespace affinityd::app {

bool InterruptGlance::step(const OutOfTime& out_of_time) {
    const auto& targets = world_->placements().queues;
    while (world_ == queues_.current().world && version_ == world_->version() && next_ < targets.size()) {
        has_found_ |= queues_.glance(targets[next_++]);
        if (out_of_time()) return false;
    }
    if (has_found_) found_();
    return true;
}

} // namespace affinityd::app
