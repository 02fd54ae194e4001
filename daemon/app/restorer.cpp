// SPDX-License-Identifier: Apache-2.0
#include "app/restorer.hpp"

#include "app/notices.hpp"
#include "app/placed.hpp"

#include <utility>

#include <fmt/format.h>

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
        count(entry, carried.applied);
    }
}

void Restorer::count(const state::Entry& entry, const enforcer::Applied& applied) {
    if (enforcer::has_gone(applied.outcome)) return;
    auto& counts = changes_.policies[entry.record.policy];
    if (enforcer::took_effect(applied.outcome))
        counts.put_back.add(entry.subject);
    else if (applied.outcome == enforcer::Outcome::foreign)
        ++counts.left;
    else if (++counts.not_put_back; counts.reason.empty())
        counts.reason = reason_of(applied);
}

/// Its record is in force again, and it is put back with all others.
void Restorer::resume(const state::Entry& entry) {
    if (choose_(entry) != Choice::restore) return;
    if (const auto done = parts_.journal.resume(entry.subject); !done)
        parts_.log.error(done.error().to_string());
}

bool Restorer::step(const OutOfTime& out_of_time) {
    if (!std::exchange(is_begun_, true)) parts_.sources.refresh(); // cpusets may be others by now
    while (with_kept_) {
        const auto entry = parts_.journal.contents().past().kept().next(kept_cursor_);
        with_kept_ = entry.has_value();
        if (entry) resume(*entry);
        if (out_of_time()) return false;
    }
    while (const auto entry = parts_.journal.next(cursor_)) {
        // systemd answers for units in its own time: app::Units restores them.
        if (!std::holds_alternative<machine::UnitCpuset>(entry->subject))
            treat(*entry);
        else if (choose_(*entry) == Choice::restore)
            ++units_;
        if (out_of_time()) return false;
    }
    if (units_ > 0)
        changes_.note =
            fmt::format("systemd is asked to put {} back", to_string(status::SubjectCounts{.units = units_}));
    done_(std::move(changes_));
    return true;
}

} // namespace affinityd::app
