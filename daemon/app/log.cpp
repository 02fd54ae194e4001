// SPDX-License-Identifier: Apache-2.0
#include "app/log.hpp"

#include <cstdlib>

#include <spdlog/logger.h>
#include <syslog.h>
#define SD_JOURNAL_SUPPRESS_LOCATION // ours is here, which says nothing
#include <systemd/sd-journal.h>

namespace affinityd::app {

namespace {

constexpr std::size_t remembered = 4096; // texts hold names of hostile processes: bounded
constexpr unsigned shown_a_minute = 10;  // of one kind

bool is_power_of_ten(std::uint64_t value) {
    while (value % 10 == 0)
        value /= 10;
    return value == 1;
}

} // namespace

Log::Log(std::shared_ptr<spdlog::logger> logger) : logger_(std::move(logger)) {}

bool Log::is_due_again(Seen& seen, std::string& message) {
    if (seen.count > 1) message += " (" + std::to_string(seen.count) + " times)";
    return is_power_of_ten(seen.count);
}

bool Log::is_due_in_minute(Seen& seen, std::string& message, Clock::time_point now) {
    if (now - seen.minute >= std::chrono::minutes(1)) {
        if (seen.held_back > 0)
            message += " (" + std::to_string(seen.held_back) + " more of this kind were not shown before)";
        seen = {.count = seen.count, .minute = now};
    }
    if (seen.shown < shown_a_minute) {
        ++seen.shown;
        return true;
    }
    ++seen.held_back;
    return false;
}

bool Log::is_due(std::string& message, std::string_view kind) {
    if (seen_.size() >= remembered) seen_.clear();
    auto& seen = seen_[kind.empty() ? message : std::string(kind)];
    ++seen.count;
    return kind.empty() ? is_due_again(seen, message) : is_due_in_minute(seen, message, Clock::now());
}

bool Log::shows_debug() const { return logger_->should_log(spdlog::level::debug); }

void Log::debug(const std::string& message) { logger_->debug("{}", message); }

void Log::refuse(const std::string& message) { logger_->error("{}", message); }

void Log::info(const std::string& message, std::string_view kind) {
    std::string text = message;
    if (kind.empty() || is_due(text, kind)) logger_->info("{}", text);
}

void Log::warn(const std::string& message, std::string_view kind) {
    std::string text = message;
    if (is_due(text, kind)) logger_->warn("{}", text);
}

void Log::error(const std::string& message, std::string_view kind) {
    std::string text = message;
    if (is_due(text, kind)) logger_->error("{}", text);
}

void Log::event(const char* message_id, const std::string& message) {
    const std::string id = std::string("MESSAGE_ID=") + message_id;
    const std::string text = "MESSAGE=" + message;
    // The journal alone carries fields; with another log, or if it does not take it, the text has to do.
    if (std::getenv("JOURNAL_STREAM") != nullptr &&
        sd_journal_send(text.c_str(), id.c_str(), "PRIORITY=%i", LOG_WARNING, "SYSLOG_IDENTIFIER=affinityd",
                        nullptr) == 0)
        return;
    logger_->warn("{}", message);
}

std::uint64_t Log::count(const std::string& kind) const {
    const auto found = seen_.find(kind);
    return found == seen_.end() ? 0 : found->second.count;
}

} // namespace affinityd::app
