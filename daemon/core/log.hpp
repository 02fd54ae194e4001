// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

namespace spdlog {
class logger;
}
namespace affinityd::accounting {
struct Notice;
}
namespace affinityd::enforcer {
struct Notice;
}
namespace affinityd::planner {
struct Action;
}

namespace affinityd::core {

/// Ids of journal messages that others may wait for; systemd/affinityd.catalog explains each. Never used for
/// anything else, never changed. sd-id128(3).
inline constexpr const char* regression_message = "0351fbf3fc2f456c924762b29166a20d";
inline constexpr const char* faulty_files_message = "4dde7f4ecba547d792f16e4d7008f438";
inline constexpr const char* reload_refused_message = "17dacfd614e24a56b85ee74a4f89c316";
inline constexpr const char* placed_message = "1486246f9e3b46878ce46362b7aa3afa";
inline constexpr const char* drift_message = "c2333adc8a7348d0a13ce58bdafdf35c";
inline constexpr const char* history_damaged_message = "efd68412d3904fcd896cc8398f5dcb50";

/// Fields of a message in the journal.
struct LogFields {
    const char* message_id = nullptr; ///< one of those above
    std::string policy{};             ///< AFFINITYD_POLICY=
    int tid = 0;                      ///< AFFINITYD_TID=; 0: it is about no thread
    std::optional<uid_t> user{};      ///< AFFINITYD_UID=: the user who asked for it
};

/// The one place that logs: one line is one message. Messages are throttled by their kind, so that neither a
/// storm of refusals nor its thousand different thread ids fill the journal: of a kind the first ten a minute
/// are shown (or as many as Kind says); the others are counted, and the count is told after the minute. A
/// warning or error without a kind is one of its own: it is shown the 1st, 10th, 100th, ... time. Names in
/// messages may be any bytes, and are escaped here (base/escape.hpp).
class Log {
  public:
    using Clock = std::chrono::steady_clock;
    struct Kind {
        Kind(const char* its_name = "", unsigned shown = 10) : name(its_name), most(shown) {}
        std::string_view name; ///< "": the message is one of its own
        unsigned most;         ///< shown of it a minute
        [[nodiscard]] static Kind always() { return {"", std::numeric_limits<unsigned>::max()}; }
    };
    explicit Log(std::shared_ptr<spdlog::logger> logger) : logger_(std::move(logger)) {}

    void info(const std::string& message, Kind kind = Kind::always(), const LogFields& fields = {});
    void warn(const std::string& message, Kind kind = {}, const LogFields& fields = {});
    void error(const std::string& message, Kind kind = {}, const LogFields& fields = {});
    void debug(const std::string& message);
    [[nodiscard]] bool shows_debug() const; ///< otherwise the message need not be put together
    /// Says how many messages were held back in minutes that are over.
    void tell_held_back(Clock::time_point now = Clock::now());

  private:
    /// A kind of message in the present minute.
    struct Shown {
        Clock::time_point minute{}; ///< when it began
        unsigned count = 0;
        std::uint64_t held_back = 0;
    };
    void say(int priority, std::string message, const Kind& kind, const LogFields& fields);
    [[nodiscard]] bool is_due(std::string& message, const Kind& kind);
    void begin_minute(const std::string& name, Shown& shown, Clock::time_point now);
    std::shared_ptr<spdlog::logger> logger_;
    std::unordered_map<std::string, std::uint64_t> texts_; ///< of messages without a kind: how often
    std::unordered_map<std::string, Shown> kinds_;         ///< names are ours: few
};

/// Logs what became of a change that a person should know of.
void log_notices(Log& log, const std::vector<enforcer::Notice>& notices);
void log_notices(Log& log, const std::vector<accounting::Notice>& notices);

/// Logs a change that was made, where debug messages are shown.
void log_change(Log& log, const planner::Action& action);

} // namespace affinityd::core
