// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/commands.hpp"

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace affinityd::control {

/// Answers as told, at once or when told to, and notes what it was asked.
class FakeCommands final : public core::Commands {
  public:
    void status(core::OwnedAnswer give) override { tell("status", std::move(give)); }
    void plan(core::OwnedAnswer give) override { tell("plan", std::move(give)); }
    Result<std::string> history(const std::string& kind) override {
        asked.push_back("history " + kind);
        return answer;
    }
    void explain(const std::string& subject, core::OwnedAnswer give) override {
        tell("explain " + subject, std::move(give));
    }
    Result<std::string> names() override {
        asked.emplace_back("names");
        return answer;
    }
    Result<std::string> trials() override {
        asked.push_back("trials");
        return answer;
    }
    void begin_trial(core::TrialOrder order, uid_t, core::Answer give) override {
        tell(std::string("try ").append(order.policy), std::move(give));
    }
    void end_trial(const std::string& policy, bool, uid_t, core::Answer give) override {
        tell("end trial of " + policy, std::move(give));
    }
    void reload(core::Answer give, core::Until until, core::ReloadReason) override {
        tell(named("reload", until), std::move(give));
    }
    void release(const std::string& what, uid_t, core::Answer give, core::Until until) override {
        tell(named("release " + what, until), std::move(give));
    }
    void apply(core::Answer give, core::Until until) override {
        tell(named("apply", until), std::move(give));
    }

    std::string answer = "{}";
    OwnedText owned; ///< instead of `answer`, if it is not empty
    bool refuses = false;
    bool is_slow = false;           ///< keeps answers in `kept`
    bool is_slow_to_change = false; ///< the same in `kept_changes`
    std::vector<core::OwnedAnswer> kept;
    std::vector<core::Answer> kept_changes;
    mutable std::vector<std::string> asked;

  private:
    static std::string named(std::string what, core::Until until) {
        return until == core::Until::begun ? "begin " + what : what;
    }
    template <class Give>
    void tell(std::string what, Give give) {
        asked.push_back(std::move(what));
        if (refuses) return give(fail(answer, "file"));
        if constexpr (std::is_same_v<Give, core::OwnedAnswer>) {
            if (is_slow) return kept.push_back(std::move(give));
            return give(owned.size() > 0 ? owned : OwnedText(answer));
        } else {
            if (is_slow_to_change) return kept_changes.push_back(std::move(give));
            give(answer);
        }
    }
};

} // namespace affinityd::control
