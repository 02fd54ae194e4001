// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"

#include <sstream>

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

namespace affinityd::app::test {

/// A log that can be read.
class ReadableLog {
  public:
    ReadableLog() : sink_(std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)) {
        auto logger = std::make_shared<spdlog::logger>("test", sink_);
        logger->set_pattern("%l %v");
        logger->set_level(spdlog::level::debug);
        log_ = std::make_unique<Log>(std::move(logger));
    }
    [[nodiscard]] Log& log() { return *log_; }
    [[nodiscard]] std::string text() const { return text_.str(); }
    [[nodiscard]] std::size_t times(const std::string& part) const {
        std::size_t count = 0;
        const auto all = text();
        for (auto at = all.find(part); at != std::string::npos; at = all.find(part, at + 1))
            ++count;
        return count;
    }

  private:
    std::ostringstream text_;
    std::shared_ptr<spdlog::sinks::ostream_sink_mt> sink_;
    std::unique_ptr<Log> log_;
};

} // namespace affinityd::app::test
