// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/enforcer.hpp"

#include <cerrno>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace affinityd::enforcer {

/// Answers as told, and keeps what it was asked to do.
class FakeEnforcer final : public Enforcer {
  public:
    Applied apply(const planner::Action& action) override {
        if (before_apply) before_apply(action);
        done.push_back(action);
        const bool is_irq = std::holds_alternative<machine::IrqMask>(action.subject);
        if (is_irq && action.to.cpus().intersects(full))
            return {outcome_of(action.subject, ENOSPC), {}, ENOSPC};
        if (!took_effect(answer)) return {answer, {}, code};
        const auto& to = granted ? *granted : action.to;
        settings[action.subject] = to;
        if (after_apply) after_apply(action);
        return {answer, to, 0};
    }
    Result<std::optional<machine::Setting>> present(const machine::Subject& subject) override {
        if (unknown) return fail("nothing can be read", {}, EMFILE);
        if (unreadable.contains(subject)) return fail("it cannot be read", {}, EIO);
        const auto found = settings.find(subject);
        const auto setting = found == settings.end() ? std::nullopt : std::optional(found->second);
        if (const auto tell = after_present) tell(subject); // it may take itself away
        return setting;
    }
    [[nodiscard]] bool may_return(const machine::Subject& subject) const override {
        return may_be_back.contains(subject);
    }
    [[nodiscard]] bool acts() const override { return live; }

    std::vector<planner::Action> done;
    std::unordered_map<machine::Subject, machine::Setting> settings; ///< of subjects that are there
    Outcome answer = Outcome::done;
    int code = EIO;                                   ///< of a refusal
    std::optional<machine::Setting> granted;          ///< instead of what is asked for
    CpuSet full;                                      ///< CPUs without an interrupt vector left
    bool unknown = false;                             ///< present() fails
    std::unordered_set<machine::Subject> unreadable;  ///< present() fails for these
    std::unordered_set<machine::Subject> may_be_back; ///< what may_return() is true for
    bool live = true;
    std::function<void(const machine::Subject&)> after_present; ///< of what could be read
    std::function<void(const planner::Action&)> before_apply;
    std::function<void(const planner::Action&)> after_apply; ///< of what took effect
};

} // namespace affinityd::enforcer
