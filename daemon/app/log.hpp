// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace spdlog {
class logger;
}
namespace affinityd::accounting {
struct Notice;
}
namespace affinityd::coexist {
struct Notice;
}
namespace affinityd::enforcer {
struct Notice;
}
namespace affinityd::planner {
struct Action;
}

namespace affinityd::app {

/// Ids of journal messages that others may wait for; systemd/affinityd.catalog explains each. Never used for
/// anything else, never changed. sd-id128(3).
inline constexpr const char* regression_message = "0351fbf3fc2f456c924762b29166a20d";
inline constexpr const char* faulty_files_message = "4dde7f4ecba547d792f16e4d7008f438";
inline constexpr const char* reload_refused_message = "17dacfd614e24a56b85ee74a4f89c316";
inline constexpr const char* placed_message = "1486246f9e3b46878ce46362b7aa3afa";
inline constexpr const char* drift_message = "c2333adc8a7348d0a13ce58bdafdf35c";
inline constexpr const char* history_damaged_message = "efd68412d3904fcd896cc8398f5dcb50";

/// The one place that logs. Messages are throttled by their kind, so that neither a storm of refusals nor its
/// thousand different thread ids fill the journal: of a kind the first ten a minute of each user are shown
/// (or as many as About says), and 30 in all; the others are counted, and the count is told after the minute.
/// A message without a kind is one of its own: it is shown the 1st, 10th, 100th, ... time. Each is one line:
/// names in it may be any bytes, and are escaped here (base/escape.hpp).
class Log {
  public:
    using Clock = std::chrono::steady_clock;
    /// What a message is about.
    struct About {
        About(std::string_view of = {}, int process = 0, unsigned shown = 10)
            : kind(of), pid(process), most(shown) {}
        About(const char* of) : kind(of) {}
        std::string_view kind; ///< "": it is one of its own
        int pid = 0;           ///< the process that it is about, whose user may cause many; 0: none
        unsigned most = 10;    ///< shown of this kind a minute, for each user
    };
    /// Whose process it is; no value: not known.
    using Owner = std::function<std::optional<unsigned>(int pid)>;
    explicit Log(std::shared_ptr<spdlog::logger> logger, Owner owner = {});
    void know_owners(Owner owner) { owner_ = std::move(owner); }

    void info(const std::string& message, About about = {});
    void warn(const std::string& message, About about = {});
    void error(const std::string& message, About about = {});
    /// As error, but always shown, and perhaps in several lines: the answer to what somebody asked for just
    /// now.
    void refuse(const std::string& message);
    /// A warning of several lines, always shown: what is wrong with the administrator's own files.
    void report(const std::string& message);
    void debug(const std::string& message);
    [[nodiscard]] bool shows_debug() const; ///< otherwise nobody need put the message together
    /// As info, and the journal gets it with an id of its own (above).
    void tell(const char* message_id, const std::string& message, About about);
    /// A warning that the journal gets with an id of its own: never held back.
    void event(const char* message_id, const std::string& message);
    /// As refuse, with an id.
    void alarm(const char* message_id, const std::string& message);
    /// Says how many messages were held back in minutes that are over.
    void tell_held_back(Clock::time_point now = Clock::now());

    /// How often a message of this kind (or, without one, of this text) came, shown or not.
    [[nodiscard]] std::uint64_t count(const std::string& kind) const;

  private:
    /// Of one kind.
    struct Kind {
        std::uint64_t count = 0;
        Clock::time_point minute{};                   ///< when the present one began
        std::unordered_map<unsigned, unsigned> shown; ///< in it, by user
        unsigned shown_in_all = 0;
        std::uint64_t held_back = 0;
    };
    [[nodiscard]] bool is_due(std::string& message, const About& about);
    [[nodiscard]] bool is_due_again(std::string& message);
    [[nodiscard]] bool is_due_in_minute(Kind& kind, const About& about) const;
    void begin_minute(const std::string& name, Kind& kind, Clock::time_point now);
    [[nodiscard]] static bool send(const char* message_id, int priority, const std::string& text);
    std::shared_ptr<spdlog::logger> logger_;
    Owner owner_;
    std::unordered_map<std::string, std::uint64_t> texts_; ///< of messages without a kind: how often
    std::unordered_map<std::string, Kind> kinds_;          ///< names are ours: few
};

/// Logs what became of a change that a person should know of.
void log_notices(Log& log, const std::vector<enforcer::Notice>& notices);

void log_notices(Log& log, const std::vector<accounting::Notice>& notices);
void log_notices(Log& log, const std::vector<coexist::Notice>& notices);

/// Logs a change that was made, where debug messages are shown.
void log_change(Log& log, const planner::Action& action);

} // namespace affinityd::app
