// SPDX-License-Identifier: Apache-2.0
#include "support/readable_log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

namespace affinityd::core::test {

ReadableLog::ReadableLog() {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    auto logger = std::make_shared<spdlog::logger>("test", std::move(sink));
    logger->set_pattern("%l %v");
    logger->set_level(spdlog::level::debug);
    log_ = std::make_unique<Log>(std::move(logger));
}

std::size_t ReadableLog::times(const std::string& part) const {
    std::size_t count = 0;
    const auto all = text();
    for (auto at = all.find(part); at != std::string::npos; at = all.find(part, at + 1))
        ++count;
    return count;
}

} // namespace affinityd::core::test
