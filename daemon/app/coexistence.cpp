// SPDX-License-Identifier: Apache-2.0
#include "app/coexistence.hpp"

#include "app/notices.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace affinityd::app {

Coexistence::Coexistence(const host::Root& root, const Current& current, const state::Journal& journal,
                         coexist::OtherWriters::Places places, Log& log)
    : current_(current), journal_(journal), log_(log), acts_(places.acts), writers_(root, places),
      peers_(root, places.runtime_dir) {}

void Coexistence::begin_pass() {
    writers_.begin_pass();
    peers_.begin_pass();
}

bool Coexistence::concerns(const inventory::ProcessScan& process) const {
    return !process.is_kernel() && writers_.is_new(process.id().tid, process.comm());
}

void Coexistence::see(const inventory::ProcessScan& process) {
    if (process.is_kernel()) return;
    writers_.see(process.id().tid, process.comm());
    peers_.see(process.id().tid, process.comm());
}

void Coexistence::end_pass() {
    std::set<unsigned> irqs;
    for (const auto& target : current_.placements().queues)
        if (const auto* irq = std::get_if<planner::IrqMask>(&target.subject)) irqs.insert(irq->irq);
    writers_.finish_pass({irqs.begin(), irqs.end()});
    if (acts_) peers_.finish_pass();
}

bool Coexistence::step(const OutOfTime& out_of_time) {
    if (!writers_.step(out_of_time) || !peers_.step(journal_, out_of_time)) return false;
    log_notices(log_, writers_.take_notices());
    log_peers();
    return true;
}

void Coexistence::handle() {
    writers_.handle();
    log_notices(log_, writers_.take_notices());
}

void Coexistence::log_peers() {
    constexpr std::size_t named = 3; // the rest is in `affinityctl status`
    for (const auto& [runtime_dir, shared] : peers_.list()) {
        for (std::size_t i = 0; i < std::min(named, shared.size()); ++i)
            log_.warn(fmt::format("{} is claimed by the affinityd in {} too", machine::to_string(shared[i]),
                                  runtime_dir));
        if (shared.size() > named)
            log_.warn(fmt::format("{} more are claimed by the affinityd in {} too", shared.size() - named,
                                  runtime_dir));
    }
}

} // namespace affinityd::app
