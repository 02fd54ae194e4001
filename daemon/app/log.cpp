// SPDX-License-Identifier: Apache-2.0
#include "app/log.hpp"

#include "base/counted.hpp"
#include "base/escape.hpp"

#include <cstdlib>

#include <spdlog/logger.h>
#include <syslog.h>
#define SD_JOURNAL_SUPPRESS_LOCATION // ours is here, which says nothing
#include <systemd/sd-journal.h>

namespace affinityd::app {

namespace {

constexpr std::size_t remembered = 4096; // texts hold names of hostile processes: bounded
constexpr unsigned shown_in_all = 30;    // of one kind
constexpr unsigned nobodys = ~0U;        // what is about no process, or one whose user is not known

bool is_power_of_ten(std::uint64_t value) {
    while (value % 10 == 0)
        value /= 10;
    return value == 1;
}

} // namespace

Log::Log(std::shared_ptr<spdlog::logger> logger, Owner owner)
    : logger_(std::move(logger)), owner_(std::move(owner)) {}

bool Log::is_due_again(std::string& message) {
    if (texts_.size() >= remembered) texts_.clear();
    const auto count = ++texts_[message];
    if (count > 1) message += " (" + std::to_string(count) + " times)";
    return is_power_of_ten(count);
}

void Log::begin_minute(const std::string& name, Kind& kind, Clock::time_point now) {
    if (now - kind.minute < std::chrono::minutes(1)) return;
    if (kind.held_back > 0)
        logger_->warn("{}: and {} more in the last minute", name, grouped(kind.held_back));
    kind = {.count = kind.count, .minute = now, .shown = {}};
}

void Log::tell_held_back(Clock::time_point now) {
    for (auto& [name, kind] : kinds_)
        begin_minute(name, kind, now);
}

/// One user's messages leave room for the others'.
bool Log::is_due_in_minute(Kind& kind, const About& about) const {
    if (kind.shown_in_all < shown_in_all) {
        const auto user = about.pid > 0 && owner_ ? owner_(about.pid).value_or(nobodys) : nobodys;
        if (kind.shown[user] < about.most) {
            ++kind.shown[user];
            ++kind.shown_in_all;
            return true;
        }
    }
    ++kind.held_back;
    return false;
}

bool Log::is_due(std::string& message, const About& about) {
    if (about.kind.empty()) return is_due_again(message);
    const std::string name(about.kind);
    auto& kind = kinds_[name];
    ++kind.count;
    begin_minute(name, kind, Clock::now());
    return is_due_in_minute(kind, about);
}

bool Log::shows_debug() const { return logger_->should_log(spdlog::level::debug); }

void Log::debug(const std::string& message) { logger_->debug("{}", escaped(message)); }

void Log::refuse(const std::string& message) { logger_->error("{}", escaped_lines(message)); }

void Log::report(const std::string& message) { logger_->warn("{}", escaped_lines(message)); }

void Log::info(const std::string& message, About about) {
    std::string text = escaped(message);
    if (about.kind.empty() || is_due(text, about)) logger_->info("{}", text);
}

void Log::warn(const std::string& message, About about) {
    std::string text = escaped(message);
    if (is_due(text, about)) logger_->warn("{}", text);
}

void Log::error(const std::string& message, About about) {
    std::string text = escaped(message);
    if (is_due(text, about)) logger_->error("{}", text);
}

/// The journal alone carries fields. False: with another log, or if it does not take it, the text has to do.
bool Log::send(const char* message_id, int priority, const std::string& text) {
    const std::string id = std::string("MESSAGE_ID=") + message_id;
    const std::string message = "MESSAGE=" + text;
    return std::getenv("JOURNAL_STREAM") != nullptr &&
           sd_journal_send(message.c_str(), id.c_str(), "PRIORITY=%i", priority,
                           "SYSLOG_IDENTIFIER=affinityd", nullptr) == 0;
}

void Log::tell(const char* message_id, const std::string& message, About about) {
    std::string text = escaped(message);
    if (is_due(text, about) && !send(message_id, LOG_INFO, text)) logger_->info("{}", text);
}

void Log::event(const char* message_id, const std::string& message) {
    const std::string shown = escaped(message);
    if (!send(message_id, LOG_WARNING, shown)) logger_->warn("{}", shown);
}

void Log::alarm(const char* message_id, const std::string& message) {
    const std::string shown = escaped_lines(message);
    if (!send(message_id, LOG_ERR, shown)) logger_->error("{}", shown);
}

std::uint64_t Log::count(const std::string& kind) const {
    if (const auto found = kinds_.find(kind); found != kinds_.end()) return found->second.count;
    const auto text = texts_.find(kind);
    return text == texts_.end() ? 0 : text->second;
}

} // namespace affinityd::app
