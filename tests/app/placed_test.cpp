// SPDX-License-Identifier: Apache-2.0
// Who asks for a pass is answered when it is over, with what it did for which policy; the log has each first
// placement once.
#include "simulated.hpp"

#include <cerrno>
#include <optional>

namespace affinityd::app {
namespace {

using nlohmann::json;
using test::Instance;

class PlacedTest : public testing::Test {
  protected:
    PlacedTest() {
        machine_.policy("server", on_two);
        machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0\"\n");
        machine_.process(10, "server");
        machine_.thread(10, 11, "worker");
    }
    void start() {
        instance_.emplace(machine_);
        ASSERT_TRUE(instance_->manager().start());
    }
    /// Asks for a pass; its answer is in `answers_`.
    void apply() {
        instance_->manager().apply([this](Result<std::string> answer) { take(std::move(answer)); },
                                   Until::done);
    }
    void reload() {
        instance_->manager().reload([this](Result<std::string> answer) { take(std::move(answer)); },
                                    Until::done, ReloadReason::asked);
    }
    void take(Result<std::string> answer) {
        answers_.push_back(answer ? json::parse(*answer) : json{{"error", answer.error().to_string()}});
    }
    std::string message() {
        return answers_.empty() ? "no answer" : answers_.back().value("message", answers_.back().dump());
    }
    std::string applied() {
        apply();
        instance_->finish();
        return message();
    }
    static json counts(int threads, int interrupts = 0, int steering = 0) {
        return {{"threads", threads},
                {"interrupts", interrupts},
                {"steering", steering},
                {"units", 0},
                {"listeners", 0}};
    }
    json of(const std::string& name) {
        for (const auto& policy : answers_.back()["policies"])
            if (policy["name"] == name) return policy;
        return {};
    }

    static constexpr const char* on_two = "match: {comm: server}\ncpus: \"2\"\nbind: set\n";
    test::Machine machine_;
    std::optional<Instance> instance_;
    std::vector<json> answers_;
};

TEST_F(PlacedTest, AnApplyIsAnsweredWhenItsPassIsOver) {
    start();
    apply();
    EXPECT_TRUE(answers_.empty()) << "not before the pass";
    instance_->finish();
    ASSERT_EQ(answers_.size(), 1U);
    EXPECT_EQ(answers_[0]["ok"], true);
    EXPECT_EQ(of("server")["placed"], counts(2));
    EXPECT_EQ(of("nic")["placed"]["interrupts"], 2);
    EXPECT_NE(message().find("server: 2 threads placed"), std::string::npos) << message();
    EXPECT_NE(message().find("nic: 2 interrupts"), std::string::npos) << message();
    EXPECT_EQ(applied().rfind("everything was in place already: 2 threads, 2 interrupts", 0), 0U)
        << message();
    machine_.process(12, "server");
    EXPECT_EQ(applied(), "server: 1 thread placed; 2 threads were in place already");
}

TEST_F(PlacedTest, AnApplyDuringAPassWaitsForTheNextOne) {
    start();
    instance_->manager().begin_pass(false);
    instance_->short_step();
    apply();
    instance_->finish();
    EXPECT_TRUE(answers_.empty()) << "that pass began before";
    instance_->pass();
    ASSERT_EQ(answers_.size(), 1U);
    EXPECT_EQ(message().rfind("everything was in place already: 2 threads", 0), 0U) << message();
}

TEST_F(PlacedTest, NothingUnderPolicyIsSaid) {
    machine_.end(10);
    machine_.policy("nic", "match: {comm: nobody}\ncpus: \"0\"\n");
    start();
    EXPECT_EQ(applied(), "nothing is under policy: there was nothing to place");
}

TEST_F(PlacedTest, RefusalsAreCountedAndSaid) {
    start();
    instance_->enforcer().refuse[planner::TaskMask{{11, 100}, 10, {}}] = enforcer::Outcome::not_permitted;
    const auto text = applied();
    EXPECT_NE(text.find("server: 1 thread placed; 1 refused: "), std::string::npos) << text;
    EXPECT_NE(text.find("; affinityctl status --failed"), std::string::npos) << text;
    EXPECT_EQ(answers_.back()["ok"], false);
    EXPECT_EQ(of("server")["refused"], 1);
    instance_->enforcer().refuse.clear();
    EXPECT_EQ(applied(), "server: 1 thread placed; 1 thread was in place already");
    EXPECT_EQ(answers_.back()["ok"], true);
}

TEST_F(PlacedTest, AReleaseSaysWhatItPutBack) {
    start();
    instance_->pass();
    auto answer = instance_->release("server");
    ASSERT_TRUE(answer);
    auto value = json::parse(*answer);
    EXPECT_EQ(value["message"], "server: 2 threads put back");
    EXPECT_EQ(value["policies"][0]["put_back"], counts(2));
    instance_->finish();
    value = json::parse(*instance_->release("server"));
    EXPECT_EQ(value["message"], "there was nothing to put back");
    instance_->finish();
    EXPECT_EQ(applied(), "server: 2 threads placed");
    machine_.thread(10, 11, "worker", "1"); // somebody else's mask
    instance_->enforcer().refuse[planner::TaskMask{{10, 100}, 10, {}}] = enforcer::Outcome::not_permitted;
    value = json::parse(*instance_->release("10"));
    EXPECT_EQ(value["ok"], false);
    EXPECT_EQ(value["message"].get<std::string>().rfind("server: 1 could not be put back: ", 0), 0U) << value;
    EXPECT_EQ(value["policies"][0]["left"], 1);
}

TEST_F(PlacedTest, AReloadSaysWhatThePassAfterItDid) {
    start();
    instance_->pass();
    machine_.policy("server", "match: {comm: server}\ncpus: \"3\"\nbind: set\n");
    reload();
    instance_->finish();
    EXPECT_EQ(message(), "reloaded: 2 policies\nserver: 2 threads placed");
    machine_.policy("nic", "cpuz: 1\n");
    machine_.policy("server", on_two);
    reload();
    instance_->finish();
    const auto error = answers_.back().value("error", "");
    EXPECT_NE(error.find("nic.yaml:"), std::string::npos) << error;
    EXPECT_NE(error.find("\nserver: 2 threads placed"), std::string::npos) << error;
}

TEST_F(PlacedTest, WhatARemovedPolicyHadIsPutBack) {
    start();
    instance_->pass();
    std::filesystem::remove(machine_.policies() + "/server.yaml");
    reload();
    instance_->finish();
    EXPECT_EQ(of("server")["put_back"], counts(2)) << answers_.back();
    EXPECT_NE(message().find("reloaded: 1 policy\n"), std::string::npos) << message();
    EXPECT_NE(message().find("server: 2 threads put back"), std::string::npos) << message();
}

TEST_F(PlacedTest, AnApplyThatAReloadOvertakesSaysSo) {
    start();
    apply();
    machine_.policy("server", "match: {comm: server}\ncpus: \"3\"\nbind: set\n");
    bool is_reloaded = false;
    instance_->manager().reload([&](const auto& answer) { is_reloaded = answer.has_value(); }, Until::begun,
                                ReloadReason::asked);
    for (unsigned slices = 0; !is_reloaded && slices < 1000; ++slices)
        instance_->short_step();
    ASSERT_TRUE(is_reloaded);
    ASSERT_TRUE(instance_->manager().work().passing()) << "the pass of the apply is under way";
    EXPECT_TRUE(answers_.empty());
    instance_->finish();
    EXPECT_TRUE(answers_.empty()) << "it did not look at everything any more";
    instance_->pass();
    ASSERT_EQ(answers_.size(), 1U);
    EXPECT_NE(message().find("\nthe policies were reloaded meanwhile: this is what the pass after that did"),
              std::string::npos)
        << message();
    EXPECT_EQ(of("server")["placed"]["threads"].get<int>() + of("server")["in_place"]["threads"].get<int>(),
              2);
    EXPECT_EQ(machine_.allowed(10, 11), "3");
}

TEST_F(PlacedTest, WhoWaitsIsToldThatTheDaemonStops) {
    start();
    apply();
    instance_->short_step();
    apply(); // for the next pass
    instance_->stop();
    ASSERT_EQ(answers_.size(), 2U);
    for (const auto& answer : answers_)
        EXPECT_EQ(answer.value("error", ""), "the daemon is stopping: what it changed is put back");
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    apply();
    EXPECT_EQ(answers_.back().value("error", ""), "the daemon is stopping");
}

TEST_F(PlacedTest, ADryRunSaysThatNothingWasChanged) {
    instance_.emplace(machine_, false);
    ASSERT_TRUE(instance_->manager().start());
    const auto text = applied();
    EXPECT_NE(text.find("this is a dry run: nothing was changed"), std::string::npos) << text;
    EXPECT_EQ(instance_->log().times("placed"), 0U);
}

TEST_F(PlacedTest, TheLogHasEachFirstPlacementOnce) {
    ::unsetenv("JOURNAL_STREAM");
    start();
    instance_->pass();
    auto& log = instance_->log();
    EXPECT_EQ(log.times("policy server: 2 threads placed"), 1U) << log.text();
    EXPECT_EQ(log.times("policy nic: 2 interrupts"), 1U) << log.text();
    instance_->pass();
    machine_.process(20, "server");
    instance_->tasks().process_changed(20);
    EXPECT_EQ(machine_.allowed(20, 20), "2");
    instance_->pass();
    EXPECT_EQ(log.times(" placed"), 2U) << "what events place later is not told: " << log.text();
    machine_.policy("late", "match: {comm: late}\ncpus: \"1\"\nbind: set\n");
    ASSERT_TRUE(instance_->reload());
    instance_->finish();
    machine_.process(30, "late");
    instance_->tasks().process_changed(30);
    instance_->pass();
    EXPECT_EQ(log.times("policy late: 1 thread placed"), 1U) << "the first ones are";
    machine_.process(31, "late");
    instance_->pass();
    EXPECT_EQ(log.times("policy late: 1 thread placed"), 2U) << "and what a pass finds";
}

TEST_F(PlacedTest, DriftThatIsPutRightIsNoFirstPlacement) {
    ::unsetenv("JOURNAL_STREAM");
    start();
    instance_->pass();
    machine_.thread(10, 11, "worker", "1");
    EXPECT_EQ(applied(), "server: 1 thread placed; 1 thread was in place already");
    EXPECT_EQ(instance_->log().times("put right"), 1U);
    EXPECT_EQ(instance_->log().times("info policy server: "), 2U) << instance_->log().text();
}

} // namespace
} // namespace affinityd::app
