// SPDX-License-Identifier: Apache-2.0
#include "app/restorer.hpp"

#include "app/notices.hpp"

#include <utility>

namespace affinityd::app {

void Restorer::treat(const state::Entry& entry) {
    switch (choose_(entry)) {
    case Choice::skip:
        return;
    case Choice::keep:
        if (const auto done = parts_.journal.settle(entry.subject, state::Parting::kept); !done)
            parts_.log.error(done.error().to_string());
        return;
    case Choice::restore:
        const auto* task = std::get_if<machine::TaskMask>(&entry.subject);
        const auto cpuset = [&] { return task == nullptr ? nullptr : parts_.sources.cpuset(task->pid); };
        const auto carried = parts_.executor.restore(entry.subject, online_, cpuset);
        log_notices(parts_.log, carried.notices);
        if (enforcer::took_effect(carried.applied.outcome)) ++count_;
    }
}

/// A unit's record is in force again: the pass that follows restores what no policy wants.
void Restorer::resume(const state::Entry& entry) {
    if (choose_(entry) != Choice::restore) return;
    if (const auto done = parts_.journal.resume(entry.subject); !done)
        parts_.log.error(done.error().to_string());
    else if (!std::holds_alternative<machine::UnitCpuset>(entry.subject))
        treat(entry);
}

bool Restorer::step(const OutOfTime& out_of_time) {
    if (!std::exchange(is_begun_, true)) parts_.sources.refresh(); // cpusets may be others by now
    while (const auto entry = parts_.journal.next(cursor_)) {
        // systemd answers for units in its own time: app::Units restores them.
        if (!std::holds_alternative<machine::UnitCpuset>(entry->subject)) treat(*entry);
        if (out_of_time()) return false;
    }
    while (with_kept_) {
        const auto entry = parts_.journal.contents().past().kept().next(kept_cursor_);
        if (!entry) break;
        resume(*entry);
        if (out_of_time()) return false;
    }
    done_(count_);
    return true;
}

} // namespace affinityd::app
