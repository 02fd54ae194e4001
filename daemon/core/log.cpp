// SPDX-License-Identifier: Apache-2.0
#include "core/log.hpp"

#include "accounting/measurements.hpp"
#include "base/escape.hpp"
#include "base/text.hpp"
#include "enforcer/executor.hpp"

#include <cstdlib>
#include <system_error>
#include <variant>

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <sys/uio.h>
#include <syslog.h>
#define SD_JOURNAL_SUPPRESS_LOCATION // ours is here, which says nothing
#include <systemd/sd-journal.h>

namespace affinityd::core {

namespace {

constexpr std::size_t remembered = 4096; // texts hold names of hostile processes: bounded

bool is_power_of_ten(std::uint64_t value) {
    while (value % 10 == 0)
        value /= 10;
    return value == 1;
}

/// With its fields, to the journal. False: the log is another one, or the journal does not take it.
bool send(int priority, const std::string& line, const LogFields& fields) {
    if (std::getenv("JOURNAL_STREAM") == nullptr) return false;
    std::vector<std::string> words{"MESSAGE=" + line, fmt::format("PRIORITY={}", priority),
                                   "SYSLOG_IDENTIFIER=affinityd"};
    if (fields.message_id != nullptr) words.push_back(fmt::format("MESSAGE_ID={}", fields.message_id));
    if (!fields.policy.empty()) words.push_back("AFFINITYD_POLICY=" + fields.policy);
    if (fields.tid != 0) words.push_back(fmt::format("AFFINITYD_TID={}", fields.tid));
    if (fields.user) words.push_back(fmt::format("AFFINITYD_UID={}", *fields.user));
    std::vector<iovec> parts;
    for (auto& word : words)
        parts.push_back({word.data(), word.size()});
    return sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) == 0;
}

spdlog::level::level_enum level_of(int priority) {
    if (priority <= LOG_ERR) return spdlog::level::err;
    return priority == LOG_WARNING ? spdlog::level::warn : spdlog::level::info;
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
    if (kind.most == Kind::always().most) return true;
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

void Log::say(int priority, std::string message, const Kind& kind, const LogFields& fields) {
    if (!is_due(message, kind)) return;
    for (const auto part : split(message, '\n'))
        if (const auto line = escaped(part); !line.empty() && !send(priority, line, fields))
            logger_->log(level_of(priority), "{}", line);
}

bool Log::shows_debug() const { return logger_->should_log(spdlog::level::debug); }

void Log::debug(const std::string& message) { logger_->debug("{}", escaped(message)); }

void Log::info(const std::string& message, Kind kind, const LogFields& fields) {
    say(LOG_INFO, message, kind, fields);
}

void Log::warn(const std::string& message, Kind kind, const LogFields& fields) {
    say(LOG_WARNING, message, kind, fields);
}

void Log::error(const std::string& message, Kind kind, const LogFields& fields) {
    say(LOG_ERR, message, kind, fields);
}

namespace {

using enforcer::Notice;

std::string reason_of(const Notice& notice) {
    const std::string outcome(to_string(notice.applied.outcome));
    if (notice.applied.code == 0) return outcome;
    return fmt::format("{}: {}", outcome, std::generic_category().message(notice.applied.code));
}

/// A listener that was told no CPU has none.
std::string value_of(const machine::Setting& setting) {
    const auto text = setting.to_string();
    return text.empty() ? "none" : text;
}

void log_notice(Log& log, const Notice& notice) {
    const auto subject = machine::to_string(notice.action.subject);
    const auto* task = std::get_if<machine::TaskMask>(&notice.action.subject);
    const LogFields fields{.policy = notice.action.policy, .tid = task == nullptr ? 0 : task->task.tid};
    const auto warn = [&](const std::string& what, Log::Kind kind) {
        log.warn(subject + what, kind, fields);
    };
    switch (notice.kind) {
    case Notice::Kind::refused: {
        // A right that the daemon lacks concerns all tasks or none: one line and a count.
        const bool lacks_right = notice.applied.outcome == enforcer::Outcome::not_permitted;
        warn(fmt::format(" could not be moved to {}: {}{}", notice.action.to.to_string(), reason_of(notice),
                         lacks_right
                             ? ": the daemon lacks a right that it needs; affinityctl status says which"
                             : ""),
             lacks_right ? Log::Kind{"changes not permitted", 1} : Log::Kind{"refused"});
        break;
    }
    case Notice::Kind::not_put_back:
        warn(fmt::format(" could not be put back to {}: {}", value_of(notice.action.to), reason_of(notice)),
             "not put back");
        break;
    case Notice::Kind::foreign:
        log.info(fmt::format("{} keeps {}: another program has changed it since", subject,
                             notice.action.from.to_string()),
                 "foreign", fields);
        break;
    case Notice::Kind::corrected: {
        auto drift = fields;
        drift.message_id = drift_message;
        log.info(fmt::format("policy {}: {} was changed to {} by another program: put right, to {}",
                             notice.action.policy, subject, notice.action.from.to_string(),
                             notice.applied.granted.to_string()),
                 "drift put right", drift);
        break;
    }
    case Notice::Kind::fight:
        warn(fmt::format(": another program keeps changing its mask (now {}): left alone for a while",
                         notice.action.from.to_string()),
             "fight");
        break;
    case Notice::Kind::diverted:
        warn(fmt::format(": CPU {} has no interrupt vector left, so it is on CPU {}",
                         notice.action.to.to_string(), notice.applied.granted.to_string()),
             "diverted");
        break;
    case Notice::Kind::journal_failed:
    case Notice::Kind::journal_behind:
        log.error((notice.fault ? notice.fault->to_string() : "the undo journal failed") +
                  (notice.kind == Notice::Kind::journal_failed
                       ? ": nothing is changed until it can be written"
                       : ""));
        break;
    }
}

void log_notice(Log& log, const accounting::Notice& notice) {
    using Kind = accounting::Notice::Kind;
    switch (notice.kind) {
    case Kind::measured:
        return log.info(notice.text);
    case Kind::regression:
        return log.warn(notice.text, Log::Kind::always(), {.message_id = regression_message});
    case Kind::history_set_aside:
        return log.warn(notice.text, Log::Kind::always(), {.message_id = history_damaged_message});
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

void log_change(Log& log, const planner::Action& action) {
    if (log.shows_debug())
        log.debug(fmt::format("{}: {} -> {} ({})", machine::to_string(action.subject),
                              action.from.to_string(), action.to.to_string(), action.reason.text));
}

} // namespace affinityd::core
