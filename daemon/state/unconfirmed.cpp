// SPDX-License-Identifier: Apache-2.0
#include "state/unconfirmed.hpp"

#include "planner/plan.hpp"

#include <utility>

namespace affinityd::state {

using machine::Setting;
using planner::UndoRecord;

namespace {

bool was_set_to(const Setting& given, const Setting& present, const CpuSet& online) {
    return planner::is_as_given({.original = {}, .asked = given, .granted = given, .policy = {}}, present,
                                online);
}

bool has_before(const UndoRecord& record, const Setting& present, const CpuSet& online) {
    return record.before && was_set_to(*record.before, present, online);
}

} // namespace

bool is_untouched(const UndoRecord& record, const Setting& present, const CpuSet& online) {
    return record.before == record.original && has_before(record, present, online);
}

Result<void> settle_unconfirmed(Journal& journal, const machine::Subject& subject, const Setting& present,
                                const CpuSet& online) {
    if (!journal.contents().is_unconfirmed(subject)) return {};
    auto record = journal.find(subject);
    if (!record || !record->before) return {};
    const bool was_made =
        was_set_to(record->asked, present, online) || was_set_to(record->granted, present, online);
    if (has_before(*record, present, online)) {
        if (was_made) return {}; // CPUs that make the difference are offline
        record->asked = record->granted = *std::exchange(record->before, std::nullopt);
        return journal.put(subject, std::move(*record));
    }
    if (!was_made && planner::was_widened(subject, *record, present, online)) return {};
    return journal.confirm(subject, record->granted);
}

} // namespace affinityd::state
