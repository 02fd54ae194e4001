// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/undo.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace affinityd::app {

/// Says when the number of queues of an interface may be changed. That resets the interface, so workers that
/// come and go must not cause it: only when the same number has been wanted for a while, seldom, one
/// interface at a time; after each refusal more seldom still; and not at all where somebody else has changed
/// the number, until begin_anew().
class QueueCountGate {
  public:
    using Clock = std::chrono::steady_clock;
    struct Terms {
        Clock::duration stable; ///< for so long, the same has to have been wanted; and between interfaces
        Clock::duration pause;  ///< between two changes of one interface
    };
    /// Those for an interval of the settings: a tenth of it for `stable`, at least a second.
    [[nodiscard]] static Terms terms_of(std::chrono::seconds interval);

    enum class Verdict : std::uint8_t {
        in_place,
        go,
        settles, ///< the same has not been wanted for long enough
        waits,   ///< this interface, or another one, was changed a short time ago, or this was refused
        foreign, ///< somebody else has changed it
    };
    struct Look {
        const machine::QueueCount& subject;
        const machine::Setting& present;
        const machine::Setting& wanted;
        bool is_enough; ///< what is wanted, or what the driver makes of it
        const std::optional<planner::UndoRecord>& record;
    };
    /// What is to be done about it now. To be called for each look at an interface, so that changes by others
    /// are seen.
    Verdict see(const Look& look, const Terms& terms, Clock::time_point now);
    /// We have changed it, which took effect, or was refused.
    void changed(const machine::QueueCount& subject, const machine::Setting& present, bool took_effect,
                 Clock::time_point now);
    /// True for a while after a refusal, longer each time, whoever wants which number.
    [[nodiscard]] bool rests(const machine::QueueCount& subject, const Terms& terms,
                             Clock::time_point now) const;
    /// The last verdict; `in_place` of one that was not seen.
    [[nodiscard]] Verdict verdict(const machine::QueueCount& subject) const;

    /// Somebody asked for everything anew: what others have set, and refusals, count no more.
    void begin_anew();
    /// A round over all interfaces has ended: forgets those that were not seen since the last one.
    void end_round(const Terms& terms, Clock::time_point now);

  private:
    struct State {
        unsigned ifindex = 0;
        std::uint64_t folder = 0;
        std::optional<machine::Setting> seen{}; ///< last
        bool had_record = false;
        bool takes_any = false; ///< whatever it is at the next look, nobody else has set it
        machine::Setting wanted{};
        Clock::time_point since{};                  ///< when that was wanted first
        std::optional<Clock::time_point> changed{}; ///< by us, or refused to us
        unsigned refusals = 0;                      ///< in a row
        Verdict verdict = Verdict::in_place;
        bool was_seen = true; ///< in this round
    };
    [[nodiscard]] static bool is_others(const State& state, const Look& look);
    [[nodiscard]] Verdict judge(const State& state, const Terms& terms, Clock::time_point now) const;
    [[nodiscard]] static Clock::duration pause_of(const State& state, const Terms& terms);

    std::unordered_map<machine::Subject, State> states_;
    std::optional<Clock::time_point> last_change_; ///< of any interface
};

/// Why it is not changed now, for people.
[[nodiscard]] std::string_view to_string(QueueCountGate::Verdict verdict);

} // namespace affinityd::app
