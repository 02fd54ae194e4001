// SPDX-License-Identifier: Apache-2.0
// The control room on a message bus: who reads what, how often, and what a restart of the bus does.
#include "bus_fixture.hpp"

#include <sys/socket.h>
#include <sys/un.h>

namespace affinityd::control {
namespace {

constexpr uid_t somebody_else = 4711;

using SystemBusTest = BusTest;

TEST_F(SystemBusTest, ThePrivilegedAreAnsweredInFullAndAnew) {
    limits_.is_privileged = is_privileged_user; // the test and the server run as the same user
    commands_.owned.add("[");
    commands_.owned.add(somebody_else, "secret", "hidden");
    commands_.owned.add("]");
    start();
    BusCaller caller(messages_, event_);
    for (int i = 0; i < 3; ++i) {
        const auto reply = caller.call("GetStatus");
        ASSERT_TRUE(answered(reply));
        EXPECT_EQ(reply->text, "[secret]");
    }
    EXPECT_EQ(commands_.asked.size(), 3U);
    const auto reload = caller.call("Reload");
    ASSERT_TRUE(answered(reload));
    EXPECT_EQ(reload->error, "");
    EXPECT_TRUE(was_asked("reload")) << "without polkit";
}

TEST_F(SystemBusTest, OthersReadDetailsOfTheirOwnProcessesOnly) {
    commands_.owned.add("[");
    commands_.owned.add(somebody_else, "secret", "hidden");
    commands_.owned.add(",");
    commands_.owned.add(::geteuid(), "own", "hidden");
    commands_.owned.add(",");
    commands_.owned.add(OwnedText::no_owner, "unknown", "hidden");
    commands_.owned.add("]");
    start();
    BusCaller caller(messages_, event_);
    for (const char* method : {"GetStatus", "GetPlan"}) {
        const auto reply = caller.call(method);
        ASSERT_TRUE(answered(reply));
        EXPECT_EQ(reply->text, "[hidden,own,hidden]") << method;
    }
    const auto reply = caller.call("Explain", "10");
    ASSERT_TRUE(answered(reply));
    EXPECT_EQ(reply->text, "[hidden,own,hidden]");
}

TEST_F(SystemBusTest, OneQuestionIsWorkedOutOnceASecondHoweverManyAsk) {
    start();
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::unique_ptr<BusCaller>> callers;
    std::vector<std::shared_ptr<Reply>> replies;
    for (int i = 0; i < 10; ++i) {
        callers.push_back(std::make_unique<BusCaller>(messages_, event_));
        for (int j = 0; j < 20; ++j)
            replies.push_back(callers.back()->call("GetStatus"));
    }
    for (const auto& reply : replies) {
        ASSERT_TRUE(answered(reply));
        EXPECT_EQ(reply->text, "{}");
    }
    const auto took =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin);
    EXPECT_LE(commands_.asked.size(), static_cast<std::size_t>(took.count()) + 1);
}

TEST_F(SystemBusTest, ThoseWhoWaitForOneAnswerShareItAndOthersAreServedMeanwhile) {
    commands_.is_slow = true;
    start();
    BusCaller caller(messages_, event_);
    const auto first = caller.call("GetPlan");
    const auto second = caller.call("GetPlan");
    ASSERT_TRUE(run_until([&] { return commands_.kept.size() == 1; }));
    const auto history = caller.call("GetHistory", "");
    ASSERT_TRUE(answered(history));
    EXPECT_FALSE(first->is_there);
    commands_.kept[0](OwnedText("late"));
    ASSERT_TRUE(answered(first) && answered(second));
    EXPECT_EQ(first->text, "late");
    EXPECT_EQ(second->text, "late");
    EXPECT_EQ(std::ranges::count(commands_.asked, "plan"), 1);
}

TEST_F(SystemBusTest, AnAnswerThatIsGivenUpIsAnErrorAndTheNextCallAsksAgain) {
    commands_.is_slow = true;
    start();
    BusCaller caller(messages_, event_);
    const auto lost = caller.call("GetStatus");
    ASSERT_TRUE(run_until([&] { return commands_.kept.size() == 1; }));
    commands_.kept.clear();
    ASSERT_TRUE(answered(lost));
    EXPECT_EQ(lost->error, SD_BUS_ERROR_NO_REPLY);
    commands_.is_slow = false;
    const auto again = caller.call("GetStatus");
    ASSERT_TRUE(answered(again));
    EXPECT_EQ(again->text, "{}");
}

TEST_F(SystemBusTest, AnAnswerThatWasBegunBeforeAChangeIsNotForThePrivilegedWhoAskAfterIt) {
    limits_.is_privileged = is_privileged_user;
    commands_.is_slow = true;
    start();
    BusCaller caller(messages_, event_);
    const auto before = caller.call("GetStatus");
    ASSERT_TRUE(run_until([&] { return commands_.kept.size() == 1; }));
    ASSERT_TRUE(answered(caller.call("Reload")));
    const auto after = caller.call("GetStatus");
    ASSERT_TRUE(run_until([&] { return commands_.kept.size() == 2; }));
    commands_.kept[0](OwnedText("a"));
    commands_.kept[1](OwnedText("b"));
    ASSERT_TRUE(answered(before) && answered(after));
    EXPECT_EQ(before->text + after->text, "ab");
}

TEST_F(SystemBusTest, AUserWhoCallsTooOftenIsRefusedOnAllHisConnections) {
    limits_.may_ask = [left = 3](uid_t) mutable { return left-- > 0; };
    start();
    BusCaller one(messages_, event_);
    BusCaller two(messages_, event_);
    for (int i = 0; i < 3; ++i) {
        const auto reply = (i == 1 ? two : one).call("GetStatus");
        ASSERT_TRUE(answered(reply));
        EXPECT_EQ(reply->error, "");
    }
    for (auto* caller : {&one, &two}) {
        const auto reply = caller->call("Explain", "10");
        ASSERT_TRUE(answered(reply));
        EXPECT_EQ(reply->error, SD_BUS_ERROR_LIMITS_EXCEEDED);
    }
    EXPECT_FALSE(was_asked("explain 10"));
}

TEST_F(SystemBusTest, AnArgumentOfAnyLengthIsNotKept) {
    start();
    BusCaller caller(messages_, event_);
    const auto reply = caller.call("Explain", std::string(1U << 20, 'a').c_str());
    ASSERT_TRUE(answered(reply));
    EXPECT_EQ(reply->error, SD_BUS_ERROR_INVALID_ARGS);
    EXPECT_TRUE(commands_.asked.empty());
}

TEST_F(SystemBusTest, AfterARestartOfTheBusTheNameIsTakenAgainAndThatIsNotedOnce) {
    start();
    messages_.stop();
    ASSERT_TRUE(run_until([&] { return noted("not on the system bus"); }));
    EXPECT_EQ(bus_->connection(), nullptr);
    // Long enough for a second vain try.
    const auto waited = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
    run_until([&] { return std::chrono::steady_clock::now() > waited; });
    EXPECT_EQ(notes_.size(), 2U) << notes_.back();
    messages_.start();
    ASSERT_TRUE(run_until([&] { return notes_.size() == 3; }));
    EXPECT_EQ(notes_.back(), "on the system bus as org.affinityd");
    BusCaller caller(messages_, event_);
    auto reply = caller.call("GetStatus");
    ASSERT_TRUE(answered(reply));
    // The daemon asks for the caller over another connection, which may be a moment later.
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!reply->error.empty() && std::chrono::steady_clock::now() < patience) {
        const auto pause = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
        run_until([&] { return std::chrono::steady_clock::now() > pause; });
        reply = caller.call("GetStatus");
        ASSERT_TRUE(answered(reply));
    }
    EXPECT_EQ(reply->text, "{}") << reply->error;
}

TEST_F(SystemBusTest, ABusThatComesLaterIsJoined) {
    serve();
    ASSERT_TRUE(noted("not on the system bus"));
    messages_.start();
    EXPECT_TRUE(run_until([&] { return noted("on the system bus as org.affinityd"); }));
}

TEST_F(SystemBusTest, ANameThatAnotherProgramHasIsNoted) {
    messages_.start();
    const auto other = messages_.connect();
    ASSERT_TRUE(other);
    ASSERT_GE(sd_bus_request_name(other->get(), "org.affinityd", 0), 0);
    serve();
    EXPECT_TRUE(run_until([&] { return noted("another program has the name org.affinityd"); }));
    EXPECT_NE(bus_->connection(), nullptr) << "others on the bus can be called all the same";
}

TEST_F(SystemBusTest, ABusThatSaysNothingHoldsNothingUp) {
    const int silent = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    messages_.socket().copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(silent, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(silent, 4), 0);
    const auto begin = std::chrono::steady_clock::now();
    serve();
    for (int i = 0; i < 20; ++i)
        sd_event_run(event_, 10'000);
    server_.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15)) << "a call waits 25 s";
    ::close(silent);
}

} // namespace
} // namespace affinityd::control
