// SPDX-License-Identifier: Apache-2.0
#include "app/dead_processes.hpp"

#include "inventory/process_scan.hpp"

#include <unordered_set>
#include <vector>

namespace affinityd::app {

namespace {

/// Threads with a record whose process has ended: there is none of its number, or one that is younger than
/// they.
std::vector<machine::TaskMask> dead_threads(const host::Root& root, const state::ThreadRecords& threads) {
    std::vector<machine::TaskMask> dead;
    std::size_t at = 0;
    while (const auto pid = threads.next_process(at)) {
        const auto scan = inventory::ProcessScan::open(root, *pid);
        if (!scan) continue; // nothing is known of it
        for (const auto& thread : threads.of(*pid))
            if (!*scan || thread.start_time < (*scan)->id().start_time) dead.push_back({thread, *pid, {}});
    }
    return dead;
}

} // namespace

void forget_dead_processes(const host::Root& root, state::Journal& journal, Log& log) {
    const auto& contents = journal.contents();
    std::unordered_set<int> pids;
    for (const auto* records : {&contents.held(), &contents.past().kept(), &contents.past().put_back()})
        for (const auto& thread : dead_threads(root, records->threads())) {
            pids.insert(thread.pid);
            if (const auto done = journal.forget(thread); !done)
                return log.error(done.error().to_string()); // the first pass tries again
        }
    // Whoever was born of them has lost its parent: its number says nothing.
    journal.mask_sources().forget_former(pids);
}

} // namespace affinityd::app
