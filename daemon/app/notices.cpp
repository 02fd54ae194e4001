// SPDX-License-Identifier: Apache-2.0
#include "app/notices.hpp"

#include "app/message_ids.hpp"

#include <system_error>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

using enforcer::Notice;

std::string reason_of(const Notice& notice) {
    const std::string outcome(to_string(notice.outcome));
    if (notice.code == 0) return outcome;
    return fmt::format("{}: {}", outcome, std::generic_category().message(notice.code));
}

/// A listener that was told no CPU has none.
std::string value_of(const machine::Setting& setting) {
    const auto text = setting.to_string();
    return text.empty() ? "none" : text;
}

/// A message about a subject; of a task, its process's user is who may cause many.
Log::About about(const char* kind, const machine::Subject& subject) {
    const auto* task = std::get_if<machine::TaskMask>(&subject);
    return {kind, task == nullptr ? 0 : task->pid};
}

void log_notice(Log& log, const Notice& notice) {
    const auto subject = machine::to_string(notice.subject);
    switch (notice.kind) {
    case Notice::Kind::refused:
        // What the daemon may not do at all concerns all tasks or none: one line and a count.
        if (notice.outcome == enforcer::Outcome::not_permitted)
            return log.warn(fmt::format("{} could not be moved to {}: {}: the daemon lacks a right that it "
                                        "needs; affinityctl status says which",
                                        subject, notice.to.to_string(), reason_of(notice)),
                            {"changes not permitted", 0, 1});
        log.warn(
            fmt::format("{} could not be moved to {}: {}", subject, notice.to.to_string(), reason_of(notice)),
            about("refused", notice.subject));
        break;
    case Notice::Kind::not_put_back:
        log.warn(fmt::format("{} could not be put back to {}: {}", subject, value_of(notice.to),
                             reason_of(notice)),
                 about("not put back", notice.subject));
        break;
    case Notice::Kind::foreign:
        log.info(
            fmt::format("{} keeps {}: somebody else has changed it since", subject, notice.from.to_string()),
            about("foreign", notice.subject));
        break;
    case Notice::Kind::corrected:
        log.tell(drift_message,
                 fmt::format("policy {}: {} was changed to {} by somebody else: put right, to {}",
                             notice.policy, subject, notice.from.to_string(), notice.granted.to_string()),
                 about("drift put right", notice.subject));
        break;
    case Notice::Kind::fight:
        log.warn(fmt::format("{}: somebody else keeps changing its mask (now {}): left alone for a while",
                             subject, notice.from.to_string()),
                 about("fight", notice.subject));
        break;
    case Notice::Kind::diverted:
        log.warn(fmt::format("{}: CPU {} has no interrupt vector left, so it is on CPU {}", subject,
                             notice.to.to_string(), notice.granted.to_string()),
                 about("diverted", notice.subject));
        break;
    case Notice::Kind::journal_failed:
        log.error((notice.fault ? notice.fault->to_string() : "the undo journal failed") +
                  ": nothing is changed until it can be written");
        break;
    case Notice::Kind::journal_behind:
        log.error(notice.fault ? notice.fault->to_string() : "the undo journal failed");
        break;
    }
}

void log_notice(Log& log, const accounting::Notice& notice) {
    using Kind = accounting::Notice::Kind;
    switch (notice.kind) {
    case Kind::measured:
        return log.info(notice.text);
    case Kind::regression:
        return log.event(regression_message, notice.text);
    case Kind::history_set_aside:
        return log.event(history_damaged_message, notice.text);
    case Kind::not_kept:
        return log.error(notice.text);
    case Kind::history_unusable:
    case Kind::history_unreadable:
        return log.warn(notice.text);
    }
}

} // namespace

void log_notices(Log& log, const std::vector<Notice>& notices) {
    for (const auto& notice : notices)
        log_notice(log, notice);
}

void log_notices(Log& log, const std::vector<accounting::Notice>& notices) {
    for (const auto& notice : notices)
        log_notice(log, notice);
}

void log_notices(Log& log, const std::vector<coexist::Notice>& notices) {
    for (const auto& notice : notices)
        log.warn(notice.text);
}

void log_change(Log& log, const planner::Action& action) {
    if (log.shows_debug())
        log.debug(fmt::format("{}: {} -> {} ({})", machine::to_string(action.subject),
                              action.from.to_string(), action.to.to_string(),
                              planner::to_string(action.reason, action.policy)));
}

} // namespace affinityd::app
