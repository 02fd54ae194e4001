// SPDX-License-Identifier: Apache-2.0
#include "simulated.hpp"

namespace affinityd::app::test {

namespace {

nlohmann::json parsed(const OwnedText& text) { return nlohmann::json::parse(text.full()); }

} // namespace

Instance::Instance(const Machine& machine, bool acting)
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
    manager_ =
        std::make_unique<Manager>(Manager::Parts{root_, journal_, enforcer, systemd_, log_.log(), settings});
}

Instance::~Instance() = default;

void Instance::pass(bool machine_changed) {
    manager_->begin_pass(machine_changed);
    finish();
}

void Instance::finish() {
    unsigned slices = 0;
    while (!step() && ++slices < 100'000) {
    }
    EXPECT_LT(slices, 100'000U) << "it must end";
}

bool Instance::step() {
    return manager_->step([] { return false; });
}

bool Instance::short_step() {
    return manager_->step([] { return true; });
}

template <class Value, class Ask>
Result<Value> Instance::answer_of(Ask ask) {
    std::optional<Result<Value>> got;
    ask(std::move_only_function<void(Result<Value>)>([&](Result<Value> value) { got = std::move(value); }));
    for (unsigned slices = 0; !got && slices < 100'000; ++slices)
        step();
    if (!got) ADD_FAILURE() << "no answer";
    return got ? std::move(*got) : fail("no answer");
}

nlohmann::json Instance::status() { return parsed(status_text()); }
nlohmann::json Instance::plan() { return parsed(plan_text()); }

nlohmann::json Instance::explain(const std::string& subject) {
    return parsed(explain_text(subject).value_or(OwnedText("{}")));
}

OwnedText Instance::status_text() {
    return *answer_of<OwnedText>([&](auto answer) { manager_->status(std::move(answer)); });
}

OwnedText Instance::plan_text() {
    return *answer_of<OwnedText>([&](auto answer) { manager_->plan(std::move(answer)); });
}

Result<OwnedText> Instance::explain_text(const std::string& subject) {
    return answer_of<OwnedText>([&](auto answer) { manager_->explain(subject, std::move(answer)); });
}

Result<std::string> Instance::reload() {
    return answer_of<std::string>(
        [&](auto answer) { manager_->reload(std::move(answer), Until::begun, ReloadReason::asked); });
}

Result<std::string> Instance::release(const std::string& what) {
    return answer_of<std::string>(
        [&](auto answer) { manager_->release(what, std::move(answer), Until::done); });
}

void Instance::apply() {
    manager_->apply([](const auto&) {}, Until::begun);
}

void Instance::stop() {
    bool is_stopped = false;
    manager_->begin_stop([&] { is_stopped = true; });
    for (unsigned slices = 0; !is_stopped && slices < 100'000; ++slices)
        step();
    EXPECT_TRUE(is_stopped);
}

std::string state_of(const nlohmann::json& status, int pid, int tid) {
    for (const auto& process : status["processes"])
        for (const auto& thread : process["threads"])
            if (process["pid"] == pid && thread["tid"] == tid) return thread["state"];
    return "not under policy";
}

nlohmann::json policy_named(const nlohmann::json& status, const std::string& name) {
    for (const auto& policy : status["policies"])
        if (policy["name"] == name) return policy;
    return nullptr;
}

} // namespace affinityd::app::test
