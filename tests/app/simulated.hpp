// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/manager.hpp"
#include "readable_log.hpp"
#include "simulated_enforcer.hpp"
#include "simulated_machine.hpp"
#include "simulated_systemd.hpp"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace affinityd::app::test {

/// A manager on a simulated machine, with everything it refers to.
class Instance {
  public:
    /// `acting`: changes the simulated machine; else it only records, as with --dry-run.
    explicit Instance(const Machine& machine, bool acting = true);
    ~Instance();
    [[nodiscard]] Manager& manager() { return *manager_; }
    [[nodiscard]] Tasks& tasks() { return manager_->tasks(); }
    [[nodiscard]] bool knows(int pid) { return tasks().table().find(pid) != nullptr; }
    [[nodiscard]] state::Journal& journal() { return journal_; }
    [[nodiscard]] SimulatedEnforcer& enforcer() { return simulated_; }
    [[nodiscard]] SimulatedSystemd& systemd() { return systemd_; }
    [[nodiscard]] ReadableLog& log() { return log_; }

    /// A whole pass.
    void pass(bool machine_changed = false);
    /// Everything that waits for a slice.
    void finish();
    bool step();
    /// One slice without any time.
    bool short_step();

    // Commands, with the slices until they are answered.
    [[nodiscard]] nlohmann::json status();
    [[nodiscard]] nlohmann::json plan();
    [[nodiscard]] nlohmann::json explain(const std::string& subject);
    [[nodiscard]] OwnedText status_text();
    [[nodiscard]] OwnedText plan_text();
    [[nodiscard]] Result<OwnedText> explain_text(const std::string& subject);
    /// The pass that follows is still to be done.
    Result<std::string> reload();
    void apply();
    Result<std::string> release(const std::string& what);
    void stop();

  private:
    template <class Value, class Ask>
    Result<Value> answer_of(Ask ask);
    host::Root root_;
    ReadableLog log_;
    state::Journal journal_;
    SimulatedEnforcer simulated_;
    SimulatedSystemd systemd_;
    std::unique_ptr<enforcer::Enforcer> recording_;
    std::unique_ptr<Manager> manager_;
};

/// What status says of a thread.
[[nodiscard]] std::string state_of(const nlohmann::json& status, int pid, int tid);
[[nodiscard]] nlohmann::json policy_named(const nlohmann::json& status, const std::string& name);

} // namespace affinityd::app::test
