// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/fence_plan.hpp"
#include "app/log.hpp"
#include "enforcer/executor.hpp"
#include "enforcer/unit_cpus.hpp"
#include "machine/subject.hpp"

#include <functional>
#include <memory>
#include <string>

namespace affinityd::app {

/// What became of a unit.
struct FenceResult {
    std::string state;           ///< "in place", or why not; "": nothing wants it
    bool is_changed = false;     ///< its CPUs are others than before
    bool is_unconfirmed = false; ///< systemd did not say whether it made the change
    bool is_restored = false;
    bool is_refused = false; ///< systemd did not make the change
};

/// Brings one unit where it should be: asks systemd what is set, plans, writes the undo record, sets, reads
/// back, confirms. Nothing waits: each step begins when systemd has answered the one before.
class FenceWriter {
  public:
    /// References must outlive it.
    FenceWriter(enforcer::Executor& executor, enforcer::UnitProperties& properties, Log& log)
        : executor_(executor), properties_(properties), log_(log) {}

    using Done = std::move_only_function<void(const FenceResult& result)>;
    /// Calls `done` once, now or later, after a bounded time; never after this or `properties` has ended. One
    /// call at a time for each unit.
    void settle(const std::string& unit, FenceWish wish, const CpuSet& online, Done done);

  private:
    struct Case {
        machine::UnitCpuset subject;
        FenceWish wish;
        CpuSet online;
        Done done;
        CpuSet present{};
        planner::UndoPointer before{};  ///< the record before the change
        planner::UndoPointer written{}; ///< the record of the change
    };
    using CasePointer = std::shared_ptr<Case>;

    void decide(const CasePointer& what, const std::expected<CpuSet, int>& present);
    void set(const CasePointer& what);
    void was_set(const CasePointer& what, int code);
    void confirm(const CasePointer& what, const std::expected<CpuSet, int>& granted);
    void restore(const CasePointer& what);
    void was_restored(const CasePointer& what, int code);
    void take_up(const Case& what, const CpuSet& present);
    void report(const auto& written) {
        if (!written) log_.error(written.error().to_string());
    }

    enforcer::Executor& executor_;
    enforcer::UnitProperties& properties_;
    Log& log_;
    std::shared_ptr<int> alive_ = std::make_shared<int>(); ///< answers that come after the end are dropped
};

} // namespace affinityd::app
