// SPDX-License-Identifier: Apache-2.0
#include "app/executor.hpp"

#include "planner/flow_counts.hpp"
#include "planner/plan.hpp"

#include <system_error>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

using enforcer::Applied;
using enforcer::Outcome;
using planner::Action;
using planner::TaskMask;

constexpr std::size_t most_refusals = 1000; // shown in status; a storm of refusals must not eat memory

bool is_task(const Action& action) { return std::holds_alternative<TaskMask>(action.subject); }

} // namespace

Applied Executor::run(const Action& action, const topology::Topology& topology) {
    if (never_moves(action.subject)) return {Outcome::immovable, {}, 0};
    CpuSet original = action.from;
    std::optional<planner::Held> before;
    if (const auto* held = journal_.find(action.subject); held != nullptr) {
        before = *held;
    } else {
        // A task that may run everywhere has no preference, and gets none back. Where CPUs are offline the
        // mask that sched_getaffinity gives lacks them, so the unfiltered one is read.
        if (is_task(action) &&
            (topology.possible != topology.online || !action.from.contains(topology.online)))
            original = enforcer_.present(action.subject).value_or(action.from);
    }
    if (enforcer_.acts())
        if (auto written = journal_.remember(action.subject, original, action.to, action.policy); !written) {
            // Not written down, so not done: it could not be undone.
            log_.error(written.error().to_string() + ": nothing is changed until it can be written");
            ++counts_[static_cast<std::size_t>(Outcome::failed)];
            return {Outcome::failed, {}, written.error().code};
        }
    const Applied applied = enforcer_.apply(action);
    ++counts_[static_cast<std::size_t>(applied.outcome)];
    if (!took_effect(applied.outcome)) return failed(action, applied, before);
    if (!refusals_.empty()) refusals_.erase(planner::to_string(action.subject));
    if (log_.shows_debug())
        log_.debug(fmt::format("{}: {} -> {} ({})", planner::to_string(action.subject),
                               planner::mask_text(action.subject, action.from),
                               planner::mask_text(action.subject, action.to), action.reason));
    if (!enforcer_.acts()) return applied;
    const auto done =
        action.restore ? journal_.forget(action.subject) : journal_.confirm(action.subject, applied.granted);
    if (!done) log_.error(done.error().to_string());
    return applied;
}

std::optional<planner::Held> Executor::inherited(const TaskMask& task, const CpuSet& present, int creator,
                                                 const CpuSet& online) const {
    if (present.contains(online) || journal_.find(task) != nullptr) return std::nullopt;
    const auto* giver = journal_.find_giver(creator, present, online);
    return giver == nullptr ? std::nullopt : std::optional(*giver);
}

void Executor::adopt_newborn(const TaskMask& task, const CpuSet& present, int creator, const CpuSet& online) {
    const auto held = inherited(task, present, creator, online);
    if (!held) return;
    if (const auto written = journal_.remember(task, held->original, present, held->policy); !written)
        log_.error(written.error().to_string() +
                   ": nothing is changed until it can be written"); // looked for again at the end
}

bool Executor::put_back_newborn(const TaskMask& task, const CpuSet& present, const planner::Held& held) {
    const auto applied = enforcer_.apply({task, present, held.original, held.policy, "put back", true});
    ++counts_[static_cast<std::size_t>(applied.outcome)];
    journal_.remember_giver(task.pid, held); // it may have created others
    return took_effect(applied.outcome);
}

Result<void> Executor::take_back(const Action& action, Outcome outcome,
                                 const std::optional<planner::Held>& before) {
    if (!before || outcome == Outcome::gone) return journal_.forget(action.subject);
    // What an earlier change did is still in force and still has to be undone one day.
    if (auto done = journal_.remember(action.subject, before->original, before->asked, before->policy); !done)
        return done;
    return journal_.confirm(action.subject, before->granted);
}

Applied Executor::failed(const Action& action, Applied applied, const std::optional<planner::Held>& before) {
    const std::string subject = planner::to_string(action.subject);
    if (enforcer_.acts())
        if (const auto done = take_back(action, applied.outcome, before); !done)
            log_.error(done.error().to_string());
    if (applied.outcome == Outcome::gone) return applied;
    if (applied.outcome == Outcome::immovable && !is_task(action))
        permanent_.emplace(subject, applied.outcome);
    const std::string why =
        fmt::format("{} ({})", to_string(applied.outcome), std::generic_category().message(applied.code));
    if (refusals_.size() < most_refusals) refusals_[subject] = why;
    log_.warn(fmt::format("{} could not be moved to {}: {}", subject,
                          planner::mask_text(action.subject, action.to), why));
    return applied;
}

bool Executor::restore(const state::Journal::Entry& entry, const CpuSet& online) {
    const auto present = enforcer_.present(entry.subject);
    bool put_back = false;
    if (!present && std::holds_alternative<planner::UnitCpuset>(entry.subject)) {
        // systemd answers also for a unit that has gone: without an answer nothing is known, and a later
        // daemon may learn it.
        log_.warn(planner::to_string(entry.subject) + " could not be put back: systemd does not answer");
        return false;
    }
    // Numbers are compared bit by bit, masks as far as CPUs are online.
    const bool is_number = planner::is_flow_count(entry.subject);
    if (present && planner::is_still_ours(entry.held, *present, is_number ? planner::to_bits(~0U) : online)) {
        const auto applied = enforcer_.apply(
            {entry.subject, *present, entry.held.original, entry.held.policy, "put back", true});
        ++counts_[static_cast<std::size_t>(applied.outcome)];
        put_back = took_effect(applied.outcome);
        if (!put_back && applied.outcome != Outcome::gone) {
            // Kept in the journal: a later daemon may succeed.
            log_.warn(fmt::format("{} could not be put back to {}: {}", planner::to_string(entry.subject),
                                  planner::mask_text(entry.subject, entry.held.original),
                                  to_string(applied.outcome)));
            return false;
        }
    }
    if (const auto forgotten = journal_.forget(entry.subject); !forgotten)
        log_.error(forgotten.error().to_string());
    return put_back;
}

} // namespace affinityd::app
