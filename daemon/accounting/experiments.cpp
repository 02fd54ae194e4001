// SPDX-License-Identifier: Apache-2.0
#include "accounting/experiments.hpp"

#include "measure/result.hpp"
#include "state/history.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

namespace affinityd::accounting {

Result<std::string> keep_experiment(const std::string& state_dir, const Experiment& experiment) {
    static_assert(most_experiment_detail <= state::most_detail);
    if (std::ranges::count(state::experiment_kinds, experiment.kind) == 0)
        return fail("there is no such experiment", experiment.kind);
    if (experiment.detail.size() > most_experiment_detail)
        return fail("the result is too long to be kept", experiment.kind);
    const auto now = std::time(nullptr);
    auto opened = state::History::open(state_dir, now);
    if (!opened) return std::unexpected(opened.error());
    state::MeasurementRecord record;
    record.time = now;
    record.kind = experiment.kind;
    record.outcome = measure::to_string(measure::Outcome::done);
    record.reason = experiment.summary;
    record.path = experiment.subject;
    record.seconds = experiment.seconds;
    record.detail = experiment.detail;
    auto remark = opened->remark();
    if (auto kept = opened->history.append(record); !kept) {
        if (!remark.empty()) kept.error().message += "; " + remark;
        return std::unexpected(kept.error());
    }
    return remark;
}

Result<std::optional<Experiment>> newest_experiment(const std::string& state_dir, std::string_view kind) {
    const auto history = state::History::open_to_read(state_dir);
    if (!history) return std::unexpected(history.error());
    if (!*history) return std::nullopt;
    auto records = (*history)->last(1, std::string(kind));
    if (!records) return std::unexpected(records.error());
    if (records->empty()) return std::nullopt;
    auto& record = records->back();
    return Experiment{.kind = std::move(record.kind),
                      .summary = std::move(record.reason),
                      .subject = std::move(record.path),
                      .seconds = record.seconds,
                      .detail = std::move(record.detail),
                      .time = record.time};
}

} // namespace affinityd::accounting
