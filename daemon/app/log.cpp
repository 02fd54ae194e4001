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

bool is_power_of_ten(std::uint64_t value) {
    while (value % 10 == 0)
        value /= 10;
    return value == 1;
}

} // namespace

Log::Log(std::shared_ptr<spdlog::logger> logger) : logger_(std::move(logger)) {}

bool Log::is_due(std::string& message) {
    if (seen_.size() >= remembered) seen_.clear();
    const auto times = ++seen_[message];
    if (times > 1) message += " (" + std::to_string(times) + " times)";
    return is_power_of_ten(times);
}

void Log::info(const std::string& message) { logger_->info("{}", message); }
bool Log::shows_debug() const { return logger_->should_log(spdlog::level::debug); }

void Log::debug(const std::string& message) { logger_->debug("{}", message); }

void Log::refuse(const std::string& message) { logger_->error("{}", message); }

void Log::warn(const std::string& message) {
    std::string text = message;
    if (is_due(text)) logger_->warn("{}", text);
}

void Log::error(const std::string& message) {
    std::string text = message;
    if (is_due(text)) logger_->error("{}", text);
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

std::uint64_t Log::count(const std::string& message) const {
    const auto found = seen_.find(message);
    return found == seen_.end() ? 0 : found->second;
}

} // namespace affinityd::app
