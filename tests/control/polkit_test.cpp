// SPDX-License-Identifier: Apache-2.0
// Changes asked for over the message bus, and a polkit that says yes, no, later, or nothing.
#include "bus_fixture.hpp"
#include "fake_polkit.hpp"

namespace affinityd::control {
namespace {

class PolkitTest : public BusTest {
  protected:
    void start_with_polkit() {
        start();
        polkit_ = std::make_unique<FakePolkit>(messages_, event_);
        caller_ = std::make_unique<BusCaller>(messages_, event_);
    }
    bool was_questioned(std::size_t count) {
        return run_until([&] { return polkit_->questions.size() == count; });
    }
    std::unique_ptr<FakePolkit> polkit_;
    std::unique_ptr<BusCaller> caller_;
};

TEST_F(PolkitTest, ACallThatPolkitAllowsIsCarriedOut) {
    start_with_polkit();
    const auto reply = caller_->call("Release", "nginx");
    ASSERT_TRUE(was_questioned(1));
    EXPECT_EQ(polkit_->questions[0].action, "org.affinityd.manage");
    EXPECT_EQ(polkit_->questions[0].caller.substr(0, 1), ":");
    EXPECT_FALSE(polkit_->questions[0].may_prompt);
    EXPECT_TRUE(commands_.asked.empty()) << "not before the answer";
    polkit_->answer(0, true);
    ASSERT_TRUE(answered(reply));
    EXPECT_EQ(reply->error, "");
    EXPECT_TRUE(was_asked("release nginx"));
}

TEST_F(PolkitTest, ACallThatPolkitForbidsIsRefused) {
    start_with_polkit();
    for (const char* method : {"Reload", "Apply", "Measure"}) {
        const auto reply = caller_->call(method);
        ASSERT_TRUE(was_questioned(polkit_->questions.size() + 1)) << method;
        polkit_->answer(polkit_->questions.size() - 1, false);
        ASSERT_TRUE(answered(reply));
        EXPECT_EQ(reply->error, SD_BUS_ERROR_ACCESS_DENIED) << method;
    }
    EXPECT_TRUE(commands_.asked.empty());
}

TEST_F(PolkitTest, APersonIsAskedOnlyIfTheCallerAllowsIt) {
    start_with_polkit();
    const auto quiet = caller_->call("Apply");
    ASSERT_TRUE(was_questioned(1));
    polkit_->answer(0, false, true);
    ASSERT_TRUE(answered(quiet));
    EXPECT_EQ(quiet->error, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED);
    const auto asking = caller_->call("Apply", nullptr, true);
    ASSERT_TRUE(was_questioned(2));
    EXPECT_TRUE(polkit_->questions[1].may_prompt);
    polkit_->answer(1, true);
    ASSERT_TRUE(answered(asking));
    EXPECT_EQ(asking->error, "");
    EXPECT_EQ(commands_.asked, (std::vector<std::string>{"apply"}));
}

TEST_F(PolkitTest, WhilePolkitThinksOthersAreServed) {
    start_with_polkit();
    const auto slow = caller_->call("Apply");
    ASSERT_TRUE(was_questioned(1));
    const auto status = caller_->call("GetStatus");
    ASSERT_TRUE(answered(status));
    EXPECT_EQ(status->text, "{}");
    EXPECT_FALSE(slow->is_there);
    polkit_->answer(0, true);
    EXPECT_TRUE(answered(slow));
}

TEST_F(PolkitTest, ASilentPolkitIsAnErrorAfterItsTime) {
    limits_.polkit.patience = std::chrono::milliseconds(300);
    start_with_polkit();
    const auto reply = caller_->call("Apply");
    ASSERT_TRUE(was_questioned(1));
    const auto meanwhile = caller_->call("GetStatus");
    ASSERT_TRUE(answered(meanwhile));
    ASSERT_TRUE(answered(reply));
    EXPECT_EQ(reply->error, SD_BUS_ERROR_TIMEOUT);
    EXPECT_NE(reply->message.find("polkit does not answer"), std::string::npos) << reply->message;
    polkit_->answer(0, true); // too late
    const auto after = caller_->call("GetPlan");
    ASSERT_TRUE(answered(after));
    EXPECT_FALSE(was_asked("apply"));
}

TEST_F(PolkitTest, RequestsThatWaitAreBoundedAndRoomIsFoundAgain) {
    limits_.polkit.per_user = 3;
    start_with_polkit();
    std::vector<std::shared_ptr<Reply>> waiting;
    for (int i = 0; i < 3; ++i)
        waiting.push_back(caller_->call("Apply"));
    ASSERT_TRUE(was_questioned(3));
    BusCaller second(messages_, event_);
    const auto refused = second.call("Apply");
    ASSERT_TRUE(answered(refused));
    EXPECT_EQ(refused->error, SD_BUS_ERROR_LIMITS_EXCEEDED) << "by user, not by connection";
    polkit_->answer(1, false);
    ASSERT_TRUE(answered(waiting[1]));
    second.call("Apply");
    EXPECT_TRUE(was_questioned(4));
}

TEST_F(PolkitTest, RequestsThatWaitAreBoundedInAll) {
    limits_.polkit.in_all = 2;
    start_with_polkit();
    caller_->call("Apply");
    caller_->call("Apply");
    const auto refused = caller_->call("Apply");
    ASSERT_TRUE(answered(refused));
    EXPECT_EQ(refused->error, SD_BUS_ERROR_LIMITS_EXCEEDED);
}

TEST_F(PolkitTest, WithoutPolkitOnlyThePrivilegedChangeThings) {
    start();
    BusCaller caller(messages_, event_);
    const auto reply = caller.call("Reload");
    ASSERT_TRUE(answered(reply));
    EXPECT_EQ(reply->error, SD_BUS_ERROR_ACCESS_DENIED);
    EXPECT_NE(reply->message.find("org.affinityd.manage"), std::string::npos);
    EXPECT_TRUE(commands_.asked.empty());
}

TEST_F(PolkitTest, APolkitThatGoesAwayMeansNo) {
    start_with_polkit();
    const auto reply = caller_->call("Reload");
    ASSERT_TRUE(was_questioned(1));
    polkit_.reset();
    ASSERT_TRUE(answered(reply));
    EXPECT_NE(reply->error, "");
    EXPECT_TRUE(commands_.asked.empty());
}

TEST_F(PolkitTest, ABusThatGoesAwayMeansNo) {
    start_with_polkit();
    const auto reply = caller_->call("Reload");
    ASSERT_TRUE(was_questioned(1));
    messages_.stop();
    ASSERT_TRUE(run_until([&] { return noted("not on the system bus"); }));
    messages_.start();
    ASSERT_TRUE(run_until([&] { return notes_.size() == 3; }));
    EXPECT_TRUE(commands_.asked.empty());
}

TEST_F(PolkitTest, TheServerMayEndWhileRequestsWait) {
    start_with_polkit();
    caller_->call("Reload");
    ASSERT_TRUE(was_questioned(1));
    commands_.is_slow = true;
    caller_->call("GetStatus");
    ASSERT_TRUE(run_until([&] { return commands_.kept.size() == 1; }));
    server_.reset();
    commands_.kept[0](OwnedText("late"));
    commands_.kept.clear();
    EXPECT_FALSE(was_asked("reload"));
}

} // namespace
} // namespace affinityd::control
