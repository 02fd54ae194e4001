// SPDX-License-Identifier: Apache-2.0
// What is read out of the machine or told about it: the NICs that serve a process, JSON.
#include "app/json.hpp"
#include "simulated.hpp"

namespace affinityd::app {
namespace {

using nlohmann::json;

const planner::TaskMask task{{10, 100}, 10, "server"};
const planner::TaskMask other{{20, 200}, 20, "other"};
const planner::IrqMask irq{"devices/d", "eth0-TxRx-0", 30};

TEST(Json, AnActionOfEachKind) {
    const planner::Action action{task, CpuSet{0, 1}, CpuSet{2}, "p", "because", false};
    EXPECT_EQ(to_json(action), json({{"kind", "task"},
                                     {"pid", 10},
                                     {"tid", 10},
                                     {"comm", "server"},
                                     {"from", "0-1"},
                                     {"to", "2"},
                                     {"policy", "p"},
                                     {"reason", "because"},
                                     {"restore", false}}));
    const planner::Action interrupt{irq, CpuSet{0}, CpuSet{1}, "p", "r", true};
    EXPECT_EQ(to_json(interrupt), json({{"kind", "irq"},
                                        {"irq", 30},
                                        {"label", "eth0-TxRx-0"},
                                        {"device", "devices/d"},
                                        {"from", "0"},
                                        {"to", "1"},
                                        {"policy", "p"},
                                        {"reason", "r"},
                                        {"restore", true}}));
    planner::SteeringMask steering;
    steering.nic = "eth0";
    steering.queue = "tx-0";
    EXPECT_EQ(to_json(planner::Action{steering, {}, CpuSet{1}, "p", "r", false})["kind"], "steering");
}

TEST(Json, AThreadTellsOnlyWhatThereIs) {
    KnownThread thread;
    thread.id = {11, 1};
    thread.comm = "io";
    thread.state = planner::ThreadPlan::State::in_place;
    thread.wanted = thread.present = CpuSet{1};
    EXPECT_EQ(to_json(thread),
              json({{"tid", 11}, {"comm", "io"}, {"state", "in place"}, {"wanted", "1"}, {"present", "1"}}));
    thread.outcome = enforcer::Outcome::narrowed;
    const auto now = Truce::Clock::now();
    while (!thread.truce.correct({.window = std::chrono::seconds(1), .first = std::chrono::hours(1)}, now)) {
    }
    const auto value = to_json(thread);
    EXPECT_EQ(value["outcome"], enforcer::to_string(enforcer::Outcome::narrowed));
    EXPECT_EQ(value["corrections"], thread.truce.corrections());
    EXPECT_EQ(value["state"], "fought over");
}

TEST(Json, AQueueTellsItsOriginalOnceItIsHeld) {
    auto journal = *state::Journal::open("");
    planner::QueueTarget target;
    target.subject = irq;
    target.nic = "eth0";
    target.policy = "p";
    target.wanted = CpuSet{1};
    target.present = CpuSet{0, 1};
    EXPECT_FALSE(to_json(target, journal).contains("original"));
    ASSERT_TRUE(journal.remember(irq, CpuSet{0, 1, 2, 3}, CpuSet{1}, "p"));
    EXPECT_EQ(to_json(target, journal)["original"], "0-3");
}

TEST(Json, WhatIsNotUtf8IsReplaced) { EXPECT_EQ(dump(json{{"a", "x\xff"}}), "{\"a\":\"x\xef\xbf\xbd\"}"); }

/// A process whose one socket is in the machine's tables.
class ServingTest : public testing::Test {
  protected:
    void tcp(const std::string& lines) const {
        machine_.tree().file("proc/net/tcp", "  sl  local_address rem_address   st tx_queue rx_queue tr "
                                             "tm->when retrnsmt   uid  timeout inode\n" +
                                                 lines);
    }
    static std::string line(const std::string& local, const std::string& remote, const char* state,
                            unsigned inode) {
        return "   0: " + local + " " + remote + " " + state +
               " 00000000:00000000 00:00000000 00000000     0        0 " + std::to_string(inode) +
               " 1 0000000000000000 100 0 0 10 0\n";
    }
    /// Names of the interfaces found for the process 10.
    std::vector<std::string> nics(const std::string& policy) {
        machine_.policy("p", policy);
        machine_.process(10, "server");
        machine_.tree().folder("proc/10/fd");
        if (!std::filesystem::is_symlink(machine_.path("proc/10/fd/3")))
            machine_.tree().link("proc/10/fd/3", "socket:[77]");
        test::Instance instance(machine_);
        EXPECT_TRUE(instance.manager().start());
        instance.pass();
        const auto status = instance.status();
        return status["processes"].empty() ? std::vector<std::string>{"no process"}
                                           : status["processes"][0]["nics"].get<std::vector<std::string>>();
    }
    test::Machine machine_;
    using Names = std::vector<std::string>;
};

TEST_F(ServingTest, AWildcardListenerIsServedByEveryRealInterface) {
    tcp(line("00000000:0050", "00000000:0000", "0A", 77));
    EXPECT_EQ(nics("match: {comm: server}\naffinity: full\n"), Names{"eth0"});
}

TEST_F(ServingTest, WithoutASocketNobodyServes) {
    tcp(line("00000000:0050", "00000000:0000", "0A", 78));
    EXPECT_EQ(nics("match: {comm: server}\naffinity: full\n"), Names{}) << "another's socket";
}

TEST_F(ServingTest, LoopbackIsNoNic) {
    tcp(line("0100007F:0050", "00000000:0000", "0A", 77));
    EXPECT_EQ(nics("match: {comm: server}\naffinity: full\n"), Names{});
}

TEST_F(ServingTest, OneNamedNicNeedsNoSocket) {
    EXPECT_EQ(nics("match: {comm: server}\naffinity: full\nnics: [eth0]\n"), Names{"eth0"});
}

TEST_F(ServingTest, ProcessPoliciesDoNotAsk) {
    tcp(line("00000000:0050", "00000000:0000", "0A", 77));
    EXPECT_EQ(nics("match: {comm: server}\naffinity: process\n"), Names{});
}

} // namespace
} // namespace affinityd::app
