// SPDX-License-Identifier: Apache-2.0
#include "app/restorer.hpp"

#include "app/notices.hpp"

namespace affinityd::app {

void Restorer::treat(const state::Entry& entry) {
    switch (choose_(entry)) {
    case Choice::skip:
        return;
    case Choice::forget:
        if (const auto done = journal_.forget(entry.subject); !done) log_.error(done.error().to_string());
        return;
    case Choice::restore:
        const auto carried = executor_.restore(entry.subject, online_);
        log_notices(log_, carried.notices);
        if (enforcer::took_effect(carried.applied.outcome)) ++count_;
    }
}

bool Restorer::step(const OutOfTime& out_of_time) {
    while (const auto entry = journal_.next(cursor_)) {
        // systemd answers for units in its own time: app::Units restores them.
        if (!std::holds_alternative<machine::UnitCpuset>(entry->subject)) treat(*entry);
        if (out_of_time()) return false;
    }
    done_(count_);
    return true;
}

} // namespace affinityd::app
