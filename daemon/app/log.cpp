// SPDX-License-Identifier: Apache-2.0
#include "app/log.hpp"

#include "accounting/measurements.hpp"
#include "base/escape.hpp"
#include "base/text.hpp"
#include "coexist/other_writers.hpp"
#include "enforcer/executor.hpp"

#include <cstdlib>
#include <system_error>

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <syslog.h>
#define SD_JOURNAL_SUPPRESS_LOCATION // ours is here, which says nothing
#include <systemd/sd-journal.h>

namespace affinityd::app {

namespace {

constexpr std::size_t remembered = 4096; // texts hold names of hostile processes: bounded

bool is_power_of_ten(std::uint64_t value) {
    while (value % 10 == 0)
        value /= 10;
    return value == 1;
}

} // namespace

void Log::begin_minute(const std::string& name, Shown& shown, Clock::time_point now) {
    if (now - shown.minute < std::chrono::minutes(1)) return;
    if (shown.held_back > 0)
        logger_->warn("{}: and {} more in the last minute", name, grouped(shown.held_back));
    shown = {.minute = now};
}

void Log::tell_held_back(Clock::time_point now) {
    for (auto& [name, shown] : kinds_)
        begin_minute(name, shown, now);
}

bool Log::is_due(std::string& message, const Kind& kind) {
    if (kind.name.empty()) {
        if (texts_.size() >= remembered) texts_.clear();
        const auto count = ++texts_[message];
        if (count > 1) message += " (" + std::to_string(count) + " times)";
        return is_power_of_ten(count);
    }
    const std::string name(kind.name);
    auto& shown = kinds_[name];
    begin_minute(name, shown, Clock::now());
    if (shown.count++ < kind.most) return true;
    ++shown.held_back;
    return false;
}

bool Log::shows_debug() const { return logger_->should_log(spdlog::level::debug); }

void Log::debug(const std::string& message) { logger_->debug("{}", escaped(message)); }

void Log::refuse(const std::string& message) { logger_->error("{}", escaped_lines(message)); }

void Log::report(const std::string& message) { logger_->warn("{}", escaped_lines(message)); }

void Log::info(const std::string& message, Kind kind) {
    std::string text = escaped(message);
    if (kind.name.empty() || is_due(text, kind)) logger_->info("{}", text);
}

void Log::warn(const std::string& message, Kind kind) {
    std::string text = escaped(message);
    if (is_due(text, kind)) logger_->warn("{}", text);
}

void Log::error(const std::string& message, Kind kind) {
    std::string text = escaped(message);
    if (is_due(text, kind)) logger_->error("{}", text);
}

/// The journal alone carries fields. False: with another log, or if it does not take it, the text has to do.
bool Log::send(const char* message_id, int priority, const std::string& text) {
    const std::string id = std::string("MESSAGE_ID=") + message_id;
    const std::string message = "MESSAGE=" + text;
    return std::getenv("JOURNAL_STREAM") != nullptr &&
           sd_journal_send(message.c_str(), id.c_str(), "PRIORITY=%i", priority,
                           "SYSLOG_IDENTIFIER=affinityd", nullptr) == 0;
}

void Log::tell(const char* message_id, const std::string& message, Kind kind) {
    std::string text = escaped(message);
    if (is_due(text, kind) && !send(message_id, LOG_INFO, text)) logger_->info("{}", text);
}

void Log::event(const char* message_id, const std::string& message) {
    const std::string shown = escaped(message);
    if (!send(message_id, LOG_WARNING, shown)) logger_->warn("{}", shown);
}

void Log::alarm(const char* message_id, const std::string& message) {
    const std::string shown = escaped_lines(message);
    if (!send(message_id, LOG_ERR, shown)) logger_->error("{}", shown);
}

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

void log_notice(Log& log, const Notice& notice) {
    const auto subject = machine::to_string(notice.subject);
    switch (notice.kind) {
    case Notice::Kind::refused:
        // A right that the daemon lacks concerns all tasks or none: one line and a count.
        if (notice.outcome == enforcer::Outcome::not_permitted)
            return log.warn(fmt::format("{} could not be moved to {}: {}: the daemon lacks a right that it "
                                        "needs; affinityctl status says which",
                                        subject, notice.to.to_string(), reason_of(notice)),
                            {"changes not permitted", 1});
        log.warn(
            fmt::format("{} could not be moved to {}: {}", subject, notice.to.to_string(), reason_of(notice)),
            "refused");
        break;
    case Notice::Kind::not_put_back:
        log.warn(fmt::format("{} could not be put back to {}: {}", subject, value_of(notice.to),
                             reason_of(notice)),
                 "not put back");
        break;
    case Notice::Kind::foreign:
        log.info(fmt::format("{} keeps {}: another program has changed it since", subject,
                             notice.from.to_string()),
                 "foreign");
        break;
    case Notice::Kind::corrected:
        log.tell(drift_message,
                 fmt::format("policy {}: {} was changed to {} by another program: put right, to {}",
                             notice.policy, subject, notice.from.to_string(), notice.granted.to_string()),
                 "drift put right");
        break;
    case Notice::Kind::fight:
        log.warn(fmt::format("{}: another program keeps changing its mask (now {}): left alone for a while",
                             subject, notice.from.to_string()),
                 "fight");
        break;
    case Notice::Kind::diverted:
        log.warn(fmt::format("{}: CPU {} has no interrupt vector left, so it is on CPU {}", subject,
                             notice.to.to_string(), notice.granted.to_string()),
                 "diverted");
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
