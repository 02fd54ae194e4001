// SPDX-License-Identifier: Apache-2.0
// The JSON forms that affinityctl-json(5) documents: programs of other people read them.
#include "status/json.hpp"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace affinityd::status {
namespace {

using nlohmann::json;
using State = planner::ThreadPlan::State;

const planner::TaskMask task{{10, 100}, 10, "server"};
const planner::IrqMask irq{"devices/d", "eth0-TxRx-0", 0, 30};

TEST(Json, AnActionHasTheKeysOfItsKind) {
    const planner::Action action{task, CpuSet{0, 1}, CpuSet{2}, "", planner::unwanted, true};
    const auto reason = std::string(planner::unwanted);
    EXPECT_EQ(to_json(action), json({{"kind", "task"},
                                     {"pid", 10},
                                     {"tid", 10},
                                     {"comm", "server"},
                                     {"from", "0-1"},
                                     {"to", "2"},
                                     {"policy", ""},
                                     {"reason", reason},
                                     {"restore", true}}));
    EXPECT_NE(reason, "");
    const planner::Action interrupt{irq, CpuSet{0}, CpuSet{1}, "p", "RPS off", false};
    EXPECT_EQ(to_json(interrupt), json({{"kind", "irq"},
                                        {"irq", 30},
                                        {"label", "eth0-TxRx-0"},
                                        {"device", "devices/d"},
                                        {"from", "0"},
                                        {"to", "1"},
                                        {"policy", "p"},
                                        {"reason", interrupt.reason.text},
                                        {"restore", false}}));
}

TEST(Json, QueuesAndFlowTablesAreNamedByInterfaceAndQueue) {
    EXPECT_EQ(
        to_json(planner::Subject(planner::SteeringMask{"devices/d", machine::Direction::tx, 3, "eth0"})),
        json({{"kind", "steering"}, {"nic", "eth0"}, {"queue", "tx-3"}}));
    EXPECT_EQ(to_json(planner::Subject(planner::FlowTable{"devices/d", 1, "eth0"})),
              json({{"kind", "steering"}, {"nic", "eth0"}, {"queue", "rx-1-flows"}}));
    EXPECT_EQ(to_json(planner::Subject(planner::FlowTable{})),
              json({{"kind", "steering"}, {"nic", "machine"}, {"queue", "flow-entries"}}));
    EXPECT_EQ(to_json(planner::Subject(planner::UnitCpuset{"a.service"})),
              json({{"kind", "unit"}, {"unit", "a.service"}}));
}

TEST(Json, AThreadWithoutCorrectionsHasNoKeyForThem) {
    ThreadStatus thread{.tid = 11, .comm = "io", .state = State::in_place};
    thread.wanted = thread.present = CpuSet{1};
    EXPECT_EQ(to_json(thread),
              json({{"tid", 11}, {"comm", "io"}, {"state", "in place"}, {"wanted", "1"}, {"present", "1"}}));
    thread.outcome = enforcer::Outcome::narrowed;
    thread.corrections = 5;
    thread.is_fought_over = true;
    const auto value = to_json(thread);
    EXPECT_EQ(value["outcome"], enforcer::to_string(enforcer::Outcome::narrowed));
    EXPECT_EQ(value["corrections"], 5);
    EXPECT_EQ(value["state"], "fought over");
}

TEST(Json, EachStateOfAThreadHasAName) {
    for (const auto state :
         {State::unwanted, State::in_place, State::changes, State::put_off, State::left_alone, State::yielded,
          State::foreign, State::outside, State::immovable, State::kept_off})
        EXPECT_NE(to_json(ThreadStatus{.state = state})["state"], "unknown");
}

TEST(Json, EachReasonToLeaveAThreadAloneHasItsText) {
    using planner::NoPlace;
    const auto text = [](const planner::ThreadPlan& plan) {
        ThreadExplanation thread{.plan = plan};
        thread.cpuset = CpuSet{0};
        thread.rule = 1;
        return to_json(thread, ProcessExplanation{}).value("reason", "");
    };
    EXPECT_EQ(text({.state = State::left_alone, .untouched = NoPlace::model}),
              "left alone: its affinity is none or irq, perhaps by auto");
    EXPECT_EQ(text({.state = State::left_alone, .untouched = NoPlace::inactive}),
              "left alone: its policy cannot be carried out on this machine");
    EXPECT_EQ(text({.state = State::left_alone, .untouched = NoPlace::leave}), "thread rule 2: leave");
    EXPECT_EQ(text({.state = State::left_alone}),
              "left alone: its policy says prior: keep, and it has a mask of its own");
    EXPECT_EQ(text({.state = State::outside, .untouched = NoPlace::outside}),
              "its cpuset (0) has none of the policy's CPUs");
    EXPECT_EQ(text({.state = State::yielded}),
              "left alone: another program changed it after us, and the policy gives way (drift)");
    EXPECT_EQ(text({.state = State::foreign}), "left alone: no policy wants it, and its mask is not ours");
    EXPECT_EQ(text({.state = State::put_off}), "left alone for a while: another program keeps changing it");
    EXPECT_EQ(text({.state = State::unwanted}), "");
    ThreadExplanation immovable;
    immovable.thread.flags = inventory::pf_kthread | inventory::pf_no_setaffinity;
    EXPECT_EQ(to_json(immovable, ProcessExplanation{})["reason"],
              "a kernel thread that the kernel does not let move");
}

TEST(Json, AThreadThatIsKeptOffCpusOrWasReleasedSaysSo) {
    ThreadExplanation thread{.plan = {.state = State::kept_off}};
    thread.plan.kept_off = planner::KeptOff{CpuSet{1}, {"excl"}};
    EXPECT_EQ(to_json(thread, ProcessExplanation{})["reason"], "kept off CPU 1: exclusive of excl");
    thread.plan.kept_off = planner::KeptOff{CpuSet{1, 2}, {"excl", "other"}};
    EXPECT_EQ(to_json(thread, ProcessExplanation{})["reason"], "kept off CPUs 1-2: exclusive of excl, other");
    ProcessExplanation process;
    process.released = true;
    const auto released = to_json(thread, process);
    EXPECT_EQ(released["reason"], "released by hand");
    EXPECT_FALSE(released.contains("wanted")) << "nobody wants it to be elsewhere until it is taken back";
}

TEST(Json, AQueueHasItsOriginalOnceItWasChangedAndANoteWhereItIsElsewhere) {
    QueueStatus queue{.subject = irq,
                      .nic = "eth0",
                      .policy = "p",
                      .wanted = CpuSet{1},
                      .present = CpuSet{0, 1},
                      .reason = "RPS off",
                      .original = {},
                      .state = QueueStatus::State::not_in_place,
                      .note = ""};
    EXPECT_EQ(to_json(queue)["state"], "not in place");
    EXPECT_FALSE(to_json(queue).contains("original"));
    EXPECT_FALSE(to_json(queue).contains("note"));
    queue.original = CpuSet{0, 1, 2, 3};
    queue.note = "elsewhere";
    EXPECT_EQ(to_json(queue)["original"], "0-3");
    EXPECT_EQ(to_json(queue)["note"], "elsewhere");
    EXPECT_EQ(to_json(queue)["present"], "0-1");
}

TEST(Json, AReleasedPolicyIsNotActive) {
    PolicyStatus policy{.name = "p", .active = true};
    EXPECT_EQ(to_json(policy)["active"], true);
    policy.released = true;
    EXPECT_EQ(to_json(policy)["active"], false);
    EXPECT_EQ(to_json(policy)["released"], true);
}

TEST(Json, AnOverviewHasAllKeysOfStatusThatDoNotGrowWithTasks) {
    const auto value = to_json(Overview{});
    for (const char* key :
         {"version", "pid", "dry_run", "started_at", "loaded_at", "last_pass_at", "policy_folders", "online",
          "journal", "reconciles", "reconciling", "fast_path", "events_lost", "refused", "outcomes",
          "policies", "problems", "units", "other_writers"})
        EXPECT_TRUE(value.contains(key)) << key;
    EXPECT_EQ(value["loaded_at"], "1970-01-01T00:00:00Z");
    EXPECT_EQ(value["refused"], json::object());
}

TEST(Json, BytesThatAreNotUtf8AreReplaced) {
    EXPECT_EQ(dump(json{{"a", "x\xff"}}), "{\"a\":\"x\xef\xbf\xbd\"}");
}

} // namespace
} // namespace affinityd::status
