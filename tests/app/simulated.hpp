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
    explicit Instance(const Machine& machine, bool acting = true)
        : root_(*host::Root::open(machine.path())),
          journal_(*state::Journal::open(acting ? machine.path("undo.journal") : "")), simulated_(machine),
          recording_(enforcer::make_recording_enforcer()) {
        Settings settings;
        settings.policy_folders = {machine.policies()};
        settings.dry_run = true; // no history in the usual place
        settings.runtime_dir = machine.path("run");
        settings.irqbalance_dir = machine.path("run/irqbalance");
        std::filesystem::create_directories(settings.runtime_dir);
        enforcer::Enforcer& enforcer = acting ? static_cast<enforcer::Enforcer&>(simulated_) : *recording_;
        manager_ = std::make_unique<Manager>(
            Manager::Parts{root_, journal_, enforcer, systemd_, log_.log(), settings});
    }
    [[nodiscard]] Manager& manager() { return *manager_; }
    [[nodiscard]] Tasks& tasks() { return manager_->tasks(); }
    [[nodiscard]] bool knows(int pid) { return tasks().table().find(pid) != nullptr; }
    [[nodiscard]] state::Journal& journal() { return journal_; }
    [[nodiscard]] SimulatedEnforcer& enforcer() { return simulated_; }
    [[nodiscard]] SimulatedSystemd& systemd() { return systemd_; }
    [[nodiscard]] ReadableLog& log() { return log_; }

    /// A whole pass.
    void pass(bool machine_changed = false) {
        manager_->begin_pass(machine_changed);
        finish();
    }
    /// Everything that waits for a slice.
    void finish() {
        unsigned slices = 0;
        while (!step() && ++slices < 100'000) {
        }
        EXPECT_LT(slices, 100'000U) << "it must end";
    }
    bool step() {
        return manager_->step([] { return false; });
    }
    /// One slice without any time.
    bool short_step() {
        return manager_->step([] { return true; });
    }

    // Commands, with the slices until they are answered.
    [[nodiscard]] nlohmann::json status() { return parsed(status_text()); }
    [[nodiscard]] nlohmann::json plan() { return parsed(plan_text()); }
    [[nodiscard]] nlohmann::json explain(const std::string& subject) {
        return parsed(explain_text(subject).value_or(OwnedText("{}")));
    }
    [[nodiscard]] OwnedText status_text() {
        return *answer_of<OwnedText>([&](auto answer) { manager_->status(std::move(answer)); });
    }
    [[nodiscard]] OwnedText plan_text() {
        return *answer_of<OwnedText>([&](auto answer) { manager_->plan(std::move(answer)); });
    }
    [[nodiscard]] Result<OwnedText> explain_text(const std::string& subject) {
        return answer_of<OwnedText>([&](auto answer) { manager_->explain(subject, std::move(answer)); });
    }
    /// The pass that follows is still to be done.
    Result<std::string> reload() {
        return answer_of<std::string>([&](auto answer) { manager_->reload(std::move(answer)); });
    }
    Result<std::string> release(const std::string& what) {
        return answer_of<std::string>([&](auto answer) { manager_->release(what, std::move(answer)); });
    }
    void stop() {
        bool is_stopped = false;
        manager_->begin_stop([&] { is_stopped = true; });
        for (unsigned slices = 0; !is_stopped && slices < 100'000; ++slices)
            step();
        EXPECT_TRUE(is_stopped);
    }

  private:
    static nlohmann::json parsed(const OwnedText& text) { return nlohmann::json::parse(text.full()); }
    template <class Value, class Ask>
    Result<Value> answer_of(Ask ask) {
        std::optional<Result<Value>> got;
        ask(std::move_only_function<void(Result<Value>)>(
            [&](Result<Value> value) { got = std::move(value); }));
        for (unsigned slices = 0; !got && slices < 100'000; ++slices)
            step();
        if (!got) ADD_FAILURE() << "no answer";
        return got ? std::move(*got) : fail("no answer");
    }
    host::Root root_;
    ReadableLog log_;
    state::Journal journal_;
    SimulatedEnforcer simulated_;
    SimulatedSystemd systemd_;
    std::unique_ptr<enforcer::Enforcer> recording_;
    std::unique_ptr<Manager> manager_;
};

/// What status says of a thread.
inline std::string state_of(const nlohmann::json& status, int pid, int tid) {
    for (const auto& process : status["processes"])
        for (const auto& thread : process["threads"])
            if (process["pid"] == pid && thread["tid"] == tid) return thread["state"];
    return "not under policy";
}

inline nlohmann::json policy_named(const nlohmann::json& status, const std::string& name) {
    for (const auto& policy : status["policies"])
        if (policy["name"] == name) return policy;
    return nullptr;
}

} // namespace affinityd::app::test
