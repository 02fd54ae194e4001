// SPDX-License-Identifier: Apache-2.0
#include "app/coexistence.hpp"

#include "app/log.hpp"

#include <set>

namespace affinityd::app {

Coexistence::Coexistence(const host::Root& root, const Current& current, coexist::OtherWriters::Places places,
                         Log& log)
    : current_(current), log_(log), writers_(root, std::move(places)) {}

bool Coexistence::concerns(const inventory::ProcessScan& process) const {
    return !process.is_kernel() && writers_.is_new(process.id().tid, process.comm());
}

void Coexistence::see(const inventory::ProcessScan& process) {
    if (!process.is_kernel()) writers_.see(process.id().tid, process.comm());
}

void Coexistence::end_pass() {
    std::set<unsigned> irqs;
    for (const auto& target : current_.placements().queues)
        if (const auto* irq = std::get_if<planner::IrqMask>(&target.subject)) irqs.insert(irq->irq);
    writers_.finish_pass({irqs.begin(), irqs.end()});
    log_notices(log_, writers_.take_notices());
}

void Coexistence::handle() {
    writers_.handle();
    log_notices(log_, writers_.take_notices());
}

} // namespace affinityd::app
