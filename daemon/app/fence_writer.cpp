// SPDX-License-Identifier: Apache-2.0
#include "app/fence_writer.hpp"

#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

constexpr const char* no_answer = "systemd does not answer for it";

std::string text_of(int code) { return std::generic_category().message(code); }

} // namespace

void FenceWriter::settle(const std::string& unit, FenceWish wish, const CpuSet& online, Done done) {
    auto what = std::make_shared<Case>(Case{{unit}, std::move(wish), online, std::move(done)});
    properties_.read(unit, [this, what, alive = std::weak_ptr(alive_)](std::expected<CpuSet, int> present) {
        if (!alive.expired()) decide(what, present);
    });
}

void FenceWriter::decide(const CasePointer& what, const std::expected<CpuSet, int>& present) {
    if (present) take_up(*what, *present);
    what->before = executor_.journal().find(what->subject);
    if (!present) {
        // systemd answers also for a unit that has gone, so nothing is known, and the record stays.
        const bool is_unwanted = what->wish.policy.empty() || !what->wish.obstacle.empty();
        if (is_unwanted && what->before)
            log_.warn(machine::to_string(what->subject) + " could not be put back: systemd does not answer",
                      "unit not put back");
        return what->done(
            {.state = no_answer, .is_unconfirmed = what->wish.is_unconfirmed, .is_refused = true});
    }
    what->present = *present;
    const auto plan = plan_fence(what->wish, *present, what->before, what->online);
    switch (plan.step) {
    case FencePlan::Step::set:
        return set(what);
    case FencePlan::Step::restore:
        return restore(what);
    case FencePlan::Step::forget:
        report(executor_.part(what->subject, state::Standing::back));
        break;
    case FencePlan::Step::nothing:
        break;
    }
    what->done({.state = plan.state});
}

/// CPUs from us that were kept, or whose record was lost, are no original.
void FenceWriter::take_up(const Case& what, const CpuSet& present) {
    if (what.wish.policy.empty() || !what.wish.obstacle.empty()) return;
    const auto* past = executor_.journal().find_past(what.subject);
    if (past == nullptr || executor_.journal().contains(what.subject)) return;
    const auto& original = past->terms->undo.original;
    if (original == machine::Setting(present)) return;
    if (!planner::is_still_ours(past->terms->undo, present, what.online)) return;
    report(executor_.journal().put(what.subject, {original, present, present, what.wish.policy}));
}

void FenceWriter::set(const CasePointer& what) {
    const auto& wish = what->wish;
    const planner::Action action{what->subject, what->present, wish.cpus, wish.policy, {},
                                 false,         what->before};
    auto written =
        executor_.remember(action, what->before ? what->before->original : what->present, what->present);
    if (!written) {
        log_.error(written.error().to_string() + ": nothing is changed until it can be written");
        return what->done({.state = "the undo journal cannot be written"});
    }
    what->written = std::move(*written);
    properties_.write(what->subject.unit, wish.cpus, [this, what, alive = std::weak_ptr(alive_)](int code) {
        if (!alive.expired()) was_set(what, code);
    });
}

void FenceWriter::was_set(const CasePointer& what, int code) {
    if (enforcer::is_without_answer(code)) // it may be set: the record stays
        return what->done({.state = no_answer, .is_unconfirmed = true, .is_refused = true});
    if (code != 0) {
        report(executor_.take_back(what->subject, what->before));
        log_.warn(fmt::format("{} could not be set to {}: {}", machine::to_string(what->subject),
                              what->wish.cpus.to_list(), text_of(code)),
                  "unit refused");
        return what->done({.state = "systemd refuses: " + text_of(code), .is_refused = true});
    }
    if (log_.shows_debug())
        log_.debug(fmt::format("{}: {} -> {} (means: cpuset)", machine::to_string(what->subject),
                               what->present.to_list(), what->wish.cpus.to_list()));
    properties_.read(what->subject.unit,
                     [this, what, alive = std::weak_ptr(alive_)](std::expected<CpuSet, int> granted) {
                         if (!alive.expired()) confirm(what, granted);
                     });
}

void FenceWriter::confirm(const CasePointer& what, const std::expected<CpuSet, int>& granted) {
    report(executor_.confirm(what->subject, *what->written, granted.value_or(what->wish.cpus)));
    what->done({.state = "in place", .is_changed = true});
}

void FenceWriter::restore(const CasePointer& what) {
    properties_.write(what->subject.unit, what->before->original.cpus(),
                      [this, what, alive = std::weak_ptr(alive_)](int code) {
                          if (!alive.expired()) was_restored(what, code);
                      });
}

void FenceWriter::was_restored(const CasePointer& what, int code) {
    const bool is_gone = code == ENOENT;
    if (code == 0 || is_gone) {
        report(executor_.part(what->subject, is_gone ? state::Standing::gone : state::Standing::back));
        return what->done({.state = what->wish.obstacle, .is_changed = !is_gone, .is_restored = !is_gone});
    }
    log_.warn(fmt::format("{} could not be put back to \"{}\": {}", machine::to_string(what->subject),
                          what->before->original.to_string(), text_of(code)),
              "unit not put back");
    what->done({.state = enforcer::is_without_answer(code) ? no_answer : "systemd refuses: " + text_of(code),
                .is_unconfirmed = enforcer::is_without_answer(code),
                .is_refused = true});
}

} // namespace affinityd::app
