// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace spdlog {
class logger;
}

namespace affinityd::app {

/// The one place that logs. Messages are throttled by their kind, so that neither a storm of refusals nor its
/// thousand different thread ids fill the journal: of a kind the first ten a minute are shown, the others are
/// counted. A message without a kind is one of its own: it is shown the 1st, 10th, 100th, ... time.
class Log {
  public:
    using Clock = std::chrono::steady_clock;
    explicit Log(std::shared_ptr<spdlog::logger> logger);

    void info(const std::string& message, std::string_view kind = {});
    void warn(const std::string& message, std::string_view kind = {});
    void error(const std::string& message, std::string_view kind = {});
    /// As error, but always shown: the answer to what somebody asked for just now.
    void refuse(const std::string& message);
    void debug(const std::string& message);
    [[nodiscard]] bool shows_debug() const; ///< otherwise nobody need put the message together
    /// A warning that the journal gets with an id of its own (message_ids.hpp): never held back.
    void event(const char* message_id, const std::string& message);

    /// How often a message of this kind (or, without one, of this text) came, shown or not.
    [[nodiscard]] std::uint64_t count(const std::string& kind) const;

  private:
    struct Seen {
        std::uint64_t count = 0;
        Clock::time_point minute{}; ///< when the present minute of a kind began
        unsigned shown = 0;         ///< in it
        std::uint64_t held_back = 0;
    };
    [[nodiscard]] bool is_due(std::string& message, std::string_view kind);
    [[nodiscard]] static bool is_due_again(Seen& seen, std::string& message);
    [[nodiscard]] static bool is_due_in_minute(Seen& seen, std::string& message, Clock::time_point now);
    std::shared_ptr<spdlog::logger> logger_;
    std::unordered_map<std::string, Seen> seen_;
};

} // namespace affinityd::app
