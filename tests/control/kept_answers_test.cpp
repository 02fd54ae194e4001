// SPDX-License-Identifier: Apache-2.0
// Answers for the privileged, over a bus of the test's own: how often the manager has to work them out.
#include "bus_fixture.hpp"

#include <gtest/gtest.h>

namespace affinityd::control {
namespace {

class KeptAnswersTest : public BusTest {
  protected:
    KeptAnswersTest() {
        limits_.bus.is_privileged = [](uid_t) { return true; };
        limits_.answers.shortest_use = limits_.answers.longest_use = std::chrono::minutes(5);
        limits_.answers.least_bytes = 1000;
    }
    [[nodiscard]] auto times_asked() const { return std::ranges::count(commands_.asked, "status"); }
    std::string ask(BusCaller& caller) {
        const auto reply = caller.call("GetStatus");
        EXPECT_TRUE(answered(reply));
        return reply->text;
    }
    void expect_kept_until(const char* method, const char* argument) {
        commands_.answer = std::string(1000, 'a');
        start();
        BusCaller caller(messages_, event_);
        ask(caller);
        EXPECT_TRUE(answered(argument == nullptr ? caller.call(method) : caller.call(method, argument)));
        commands_.answer = std::string(1000, 'b');
        EXPECT_EQ(ask(caller), commands_.answer) << "what was changed by " << method << " is seen at once";
        EXPECT_EQ(times_asked(), 2);
    }
};

TEST_F(KeptAnswersTest, LongOnesAreWorkedOutOnceForAllWhoAskForThem) {
    commands_.owned.add(4711, std::string(1000, 'a'), "no");
    start();
    BusCaller one(messages_, event_), another(messages_, event_);
    for (int i = 0; i < 20; ++i)
        ASSERT_EQ(ask(i % 2 == 0 ? one : another), std::string(1000, 'a')) << "in full";
    EXPECT_EQ(times_asked(), 1);
}

TEST_F(KeptAnswersTest, ShortOnesAreAlwaysNew) {
    start();
    BusCaller caller(messages_, event_);
    for (int i = 0; i < 5; ++i) {
        commands_.answer = std::to_string(i);
        ASSERT_EQ(ask(caller), commands_.answer);
    }
}

TEST_F(KeptAnswersTest, ThoseOfAnotherQuestionAreOthers) {
    commands_.answer = std::string(1000, 'a');
    start();
    BusCaller caller(messages_, event_);
    ask(caller);
    for (const char* subject : {"1", "2", "1"})
        ASSERT_TRUE(answered(caller.call("Explain", subject)));
    EXPECT_EQ(commands_.asked, (std::vector<std::string>{"status", "explain 1", "explain 2"}));
}

TEST_F(KeptAnswersTest, AreWorkedOutAnewWhenTheirTimeIsOver) {
    limits_.answers.shortest_use = limits_.answers.longest_use = std::chrono::milliseconds(20);
    commands_.answer = std::string(1000, 'a');
    start();
    BusCaller caller(messages_, event_);
    ask(caller);
    EXPECT_TRUE(run_until([&] {
        ask(caller);
        return times_asked() >= 3;
    }));
}

TEST_F(KeptAnswersTest, AReloadEndsTheirTime) { expect_kept_until("Reload", nullptr); }
TEST_F(KeptAnswersTest, AReleaseEndsTheirTime) { expect_kept_until("Release", "web"); }
TEST_F(KeptAnswersTest, AnApplyEndsTheirTime) { expect_kept_until("Apply", nullptr); }

TEST_F(KeptAnswersTest, OneThatWasBegunBeforeAChangeIsNotForWhoAsksAfterIt) {
    commands_.is_slow = true;
    start();
    BusCaller caller(messages_, event_);
    const auto before = caller.call("GetStatus");
    ASSERT_TRUE(run_until([&] { return commands_.kept.size() == 1; }));
    ASSERT_TRUE(answered(caller.call("Reload")));
    const auto after = caller.call("GetStatus");
    ASSERT_TRUE(run_until([&] { return commands_.kept.size() == 2; }));
    commands_.kept[0](OwnedText(std::string(1000, 'a')));
    commands_.kept[1](OwnedText(std::string(1000, 'b')));
    ASSERT_TRUE(answered(before) && answered(after));
    EXPECT_EQ(before->text.front(), 'a');
    EXPECT_EQ(after->text.front(), 'b');
}

TEST_F(KeptAnswersTest, ManyWhoWaitGetTheSameOne) {
    commands_.is_slow = true;
    start();
    BusCaller caller(messages_, event_);
    std::vector<std::shared_ptr<Reply>> replies;
    for (int i = 0; i < 50; ++i)
        replies.push_back(caller.call("GetStatus"));
    ASSERT_TRUE(run_until([&] { return !commands_.kept.empty(); }));
    for (int i = 0; i < 50; ++i)
        sd_event_run(event_, 1000);
    commands_.kept.front()(OwnedText("{}"));
    for (const auto& reply : replies)
        EXPECT_TRUE(answered(reply) && reply->text == "{}") << reply->error;
    EXPECT_EQ(times_asked(), 1);
}

} // namespace
} // namespace affinityd::control
