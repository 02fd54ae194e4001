// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace spdlog {
class logger;
}

namespace affinityd::app {

/// The one place that logs. A message that comes again is counted and shown at the 10th, 100th, ... time, not
/// every time: at 3 a.m. nobody wants ten thousand equal lines.
class Log {
  public:
    explicit Log(std::shared_ptr<spdlog::logger> logger);

    void info(const std::string& message);
    void warn(const std::string& message);
    void error(const std::string& message);
    /// As error, but shown each time: the answer to something that somebody asked for just now.
    void refuse(const std::string& message);
    void debug(const std::string& message);
    [[nodiscard]] bool shows_debug() const; ///< else nobody need put the message together
    /// A warning that the journal gets with an id of its own (message_ids.hpp): never held back.
    void event(const char* message_id, const std::string& message);

    /// How often a message of this text was reported, shown or not.
    [[nodiscard]] std::uint64_t count(const std::string& message) const;

  private:
    [[nodiscard]] bool is_due(std::string& message);
    std::shared_ptr<spdlog::logger> logger_;
    std::unordered_map<std::string, std::uint64_t> seen_;
};

} // namespace affinityd::app
