// SPDX-License-Identifier: Apache-2.0
#include "enforcer/executor.hpp"
#include "fake_enforcer.hpp"
#include "subjects.hpp"
#include "support/full_disk.hpp"
#include "support/journal_copy.hpp"
#include "support/tree.hpp"

#include <cerrno>
#include <memory>

#include <gtest/gtest.h>

namespace affinityd::enforcer {
namespace {

using machine::FlowCount;
using machine::FlowTable;
using machine::IrqMask;
using machine::Setting;
using machine::Subject;
using machine::TaskMask;
using machine::UnitCpuset;
using planner::Action;
using planner::UndoRecord;
using test::all;
using test::four_cpus;
using test::irq;
using test::task;

Action change(const Subject& subject, const Setting& from, const Setting& to, bool restore = false) {
    return {subject, from, to, "p", {}, restore};
}

class ExecutorTest : public testing::Test {
  protected:
    test::Tree tree_;
    state::Journal journal_ = *state::Journal::open(tree_.path("undo.journal"));
    FakeEnforcer enforcer_;
    Executor executor_{journal_, enforcer_};
    topology::Topology topology_ = four_cpus();

    Carried run(const Action& action) {
        auto carried = executor_.run(action, {topology_});
        EXPECT_TRUE(carried) << "it was put off";
        return carried.value_or(Carried{});
    }
    void hold(const Subject& subject, const Setting& original, const Setting& ours) {
        ASSERT_TRUE(journal_.remember(subject, original, ours, "p"));
        ASSERT_TRUE(journal_.confirm(subject, ours));
        enforcer_.settings[subject] = ours;
    }
    [[nodiscard]] std::optional<UndoRecord> on_disk(const Subject& subject) const {
        return test::read_journal(tree_.path("undo.journal")).find(subject);
    }
    [[nodiscard]] static std::vector<Notice::Kind> kinds(const Carried& carried) {
        std::vector<Notice::Kind> kinds;
        for (const auto& notice : carried.notices)
            kinds.push_back(notice.kind);
        return kinds;
    }
    using Kinds = std::vector<Notice::Kind>;
};

TEST_F(ExecutorTest, AChangeIsOnDiskWithWhatWasBeforeAndWhatWasGranted) {
    enforcer_.granted = CpuSet{2};
    const auto carried = run(change(task, all, CpuSet{2, 3}));
    EXPECT_EQ(carried.applied.outcome, Outcome::done);
    EXPECT_TRUE(carried.notices.empty());
    EXPECT_EQ(on_disk(task), (UndoRecord{all, CpuSet{2, 3}, CpuSet{2}, "p"}));
    EXPECT_EQ(executor_.counts()[static_cast<std::size_t>(Outcome::done)], 1U);
}

TEST_F(ExecutorTest, WhatSomebodyElseChangedIsCountedAndTold) {
    EXPECT_EQ(kinds(run(change(task, all, CpuSet{1}))), Kinds{}) << "the first change";
    const auto carried = run(change(task, CpuSet{3}, CpuSet{1}));
    ASSERT_EQ(kinds(carried), Kinds{Notice::Kind::corrected});
    EXPECT_EQ(carried.notices[0].policy, "p");
    EXPECT_EQ(carried.notices[0].from, Setting{CpuSet{3}});
    EXPECT_EQ(kinds(run(change(task, CpuSet{1}, CpuSet{2}))), Kinds{}) << "the policy wants something else";
    EXPECT_EQ(executor_.corrected().at("p"), 1U);
    executor_.expect_changes({true, true});
    EXPECT_EQ(kinds(run(change(task, all, CpuSet{2}))), Kinds{}) << "the kernel may have reset it";
    EXPECT_EQ(executor_.corrected().at("p"), 1U);
}

TEST_F(ExecutorTest, TheRecordIsOnDiskBeforeTheChangeIsMade) {
    bool was_on_disk = false;
    enforcer_.before_apply = [&](const Action& action) { was_on_disk = on_disk(action.subject).has_value(); };
    run(change(task, all, CpuSet{2}));
    EXPECT_TRUE(was_on_disk);
}

TEST_F(ExecutorTest, TwoInterruptsWithOneLabelGetEachTheirOwnOriginalBack) {
    const IrqMask first{"devices/platform/end0", "eth0", 0, 37},
        second{"devices/platform/end0", "eth0", 1, 38};
    enforcer_.settings = {{first, CpuSet{0}}, {second, CpuSet{1}}};
    run(change(first, CpuSet{0}, CpuSet{2}));
    run(change(second, CpuSet{1}, CpuSet{2}));
    for (const auto& subject : {first, second})
        EXPECT_EQ(executor_.restore(subject, all).applied.outcome, Outcome::done);
    EXPECT_EQ(enforcer_.settings.at(first), Setting{CpuSet{0}});
    EXPECT_EQ(enforcer_.settings.at(second), Setting{CpuSet{1}});
}

TEST_F(ExecutorTest, WhatCannotBeWrittenDownIsNotDone) {
    auto full = std::make_optional<test::FullDisk>(0);
    const auto first = run(change(task, all, CpuSet{1}));
    const auto second = run(change(irq, all, CpuSet{1}));
    full.reset();
    EXPECT_EQ(first.applied.outcome, Outcome::unrecorded);
    EXPECT_EQ(first.applied.code, EFBIG);
    ASSERT_EQ(kinds(first), Kinds{Notice::Kind::journal_failed});
    EXPECT_TRUE(first.notices[0].fault);
    EXPECT_EQ(second.applied.outcome, Outcome::unrecorded);
    EXPECT_TRUE(enforcer_.done.empty()) << "nothing may be changed that could not be undone";
    EXPECT_FALSE(journal_.find(task));
    EXPECT_TRUE(executor_.refusals().empty()) << "the disk refused, not the task";
    EXPECT_EQ(run(change(task, all, CpuSet{1})).applied.outcome, Outcome::done)
        << "as soon as it can be written";
}

TEST_F(ExecutorTest, ADryRunWritesNothingDown) {
    enforcer_.live = false;
    EXPECT_EQ(run(change(task, all, CpuSet{1})).applied.outcome, Outcome::done);
    EXPECT_EQ(journal_.size(), 0U);
    EXPECT_FALSE(on_disk(task));
}

TEST_F(ExecutorTest, AFailedFirstChangeLeavesNoRecord) {
    for (const auto outcome :
         {Outcome::not_permitted, Outcome::deadline, Outcome::no_cpu, Outcome::gone, Outcome::failed}) {
        enforcer_.answer = outcome;
        EXPECT_EQ(run(change(task, all, CpuSet{1})).applied.outcome, outcome);
        EXPECT_FALSE(on_disk(task)) << to_string(outcome);
    }
}

TEST_F(ExecutorTest, AFailedSecondChangeLeavesTheRecordOfTheFirst) {
    ASSERT_EQ(run(change(task, all, CpuSet{1})).applied.outcome, Outcome::done);
    enforcer_.answer = Outcome::not_permitted;
    ASSERT_EQ(run(change(task, CpuSet{1}, CpuSet{2})).applied.outcome, Outcome::not_permitted);
    EXPECT_EQ(on_disk(task), (UndoRecord{all, CpuSet{1}, CpuSet{1}, "p"}))
        << "the first change is still in force";
}

TEST_F(ExecutorTest, OfATaskThatIsGoneNothingIsKept) {
    ASSERT_EQ(run(change(task, all, CpuSet{1})).applied.outcome, Outcome::done);
    enforcer_.answer = Outcome::gone;
    const auto carried = run(change(task, CpuSet{1}, CpuSet{2}));
    ASSERT_EQ(carried.applied.outcome, Outcome::gone);
    EXPECT_FALSE(on_disk(task));
    EXPECT_TRUE(executor_.refusals().empty()) << "that a task ends is no refusal";
    EXPECT_TRUE(carried.notices.empty());
}

TEST_F(ExecutorTest, TheRecordOfAThreadThatIsGoneIsLeftAsItMayBeTheMainThreadByNow) {
    const TaskMask worker{{task.pid + 1, 900}, task.pid, "worker"};
    enforcer_.settings[worker] = all;
    enforcer_.answer = Outcome::gone;
    ASSERT_EQ(run(change(worker, all, CpuSet{1})).applied.outcome, Outcome::gone);
    EXPECT_EQ(journal_.find(worker), (UndoRecord{all, CpuSet{1}, CpuSet{1}, "p", all}));
    EXPECT_TRUE(executor_.refusals().empty());
}

TEST_F(ExecutorTest, OfAThreadThatWasGoneBeforeItsMaskCouldBeReadNothingIsKept) {
    const TaskMask worker{{task.pid + 1, 900}, task.pid, "worker"};
    enforcer_.answer = Outcome::gone;
    ASSERT_EQ(run(change(worker, CpuSet{}, CpuSet{1})).applied.outcome, Outcome::gone);
    EXPECT_FALSE(journal_.contains(worker));
}

TEST_F(ExecutorTest, AnInterruptThatCanNeverMoveIsAskedOnce) {
    enforcer_.answer = Outcome::immovable;
    EXPECT_EQ(run(change(irq, all, CpuSet{1})).applied.outcome, Outcome::immovable);
    enforcer_.answer = Outcome::done;
    EXPECT_TRUE(executor_.refusals().is_permanent(irq));
    EXPECT_TRUE(executor_.is_put_off(change(irq, all, CpuSet{2})));
    EXPECT_FALSE(executor_.run(change(irq, all, CpuSet{2}), {topology_}));
    EXPECT_EQ(enforcer_.done.size(), 1U);
    EXPECT_EQ(executor_.refusals().size(), 1U) << "and status goes on to show it";
    EXPECT_FALSE(on_disk(irq));
    const IrqMask same_label{irq.device, irq.label, 1, 31};
    EXPECT_FALSE(executor_.refusals().is_permanent(same_label)) << "another line with the same label";
}

TEST_F(ExecutorTest, ARefusalIsToldOnceForEachReason) {
    enforcer_.answer = Outcome::failed;
    const auto first = run(change(irq, all, CpuSet{1}));
    ASSERT_EQ(kinds(first), Kinds{Notice::Kind::refused});
    EXPECT_EQ(first.notices[0].subject, Subject{irq});
    EXPECT_EQ(first.notices[0].outcome, Outcome::failed);
    EXPECT_EQ(first.notices[0].to, Setting{CpuSet{1}});
    EXPECT_TRUE(run(change(irq, all, CpuSet{1})).notices.empty()) << "the same again";
    enforcer_.answer = Outcome::not_permitted;
    EXPECT_EQ(kinds(run(change(irq, all, CpuSet{1}))), Kinds{Notice::Kind::refused}) << "for another reason";
    ASSERT_NE(executor_.refusals().find(irq), nullptr);
    enforcer_.answer = Outcome::done;
    EXPECT_EQ(run(change(irq, all, CpuSet{1})).applied.outcome, Outcome::done);
    EXPECT_TRUE(executor_.refusals().empty()) << "what works is no longer refused";
}

TEST_F(ExecutorTest, RefusalsAreBoundedAndTheNewestAreShown) {
    enforcer_.answer = Outcome::not_permitted;
    const auto storm = [](int i) { return TaskMask{{i, 1}, i, "storm"}; };
    for (int i = 1; i <= 3000; ++i)
        EXPECT_EQ(kinds(run(change(storm(i), all, CpuSet{1}))), Kinds{Notice::Kind::refused})
            << "told, however many there were before";
    EXPECT_EQ(executor_.refusals().size(), Refusals::most_shown);
    EXPECT_NE(executor_.refusals().find(storm(3000)), nullptr) << "old ones do not hide it";
    EXPECT_EQ(executor_.refusals().find(storm(1)), nullptr);
    EXPECT_EQ(executor_.counts()[static_cast<std::size_t>(Outcome::not_permitted)], 3000U);
}

TEST_F(ExecutorTest, RefusalsOfTasksThatAreGoneAreDropped) {
    enforcer_.answer = Outcome::not_permitted;
    const auto thread = [](int i) { return TaskMask{{i, 1}, 1, "t"}; };
    for (int i = 1; i <= 10; ++i) {
        enforcer_.settings[thread(i)] = all;
        run(change(thread(i), all, CpuSet{1}));
    }
    ASSERT_EQ(executor_.refusals().size(), 10U);
    ASSERT_TRUE(executor_.gone(thread(3)));
    EXPECT_EQ(executor_.refusals().find(thread(3)), nullptr) << "its exit was seen";
    for (int i = 4; i <= 10; ++i)
        enforcer_.settings.erase(thread(i)); // nobody told of these exits
    executor_.drop_gone(4);
    EXPECT_LT(executor_.refusals().size(), 9U);
    EXPECT_GT(executor_.refusals().size(), 2U) << "a slice looks at four";
    executor_.drop_gone(4);
    executor_.drop_gone(4);
    EXPECT_EQ(executor_.refusals().size(), 2U) << "those that are there and still refuse";
    enforcer_.unknown = true;
    executor_.drop_gone(100);
    EXPECT_EQ(executor_.refusals().size(), 2U) << "that nothing can be read does not mean that they are gone";
}

TEST_F(ExecutorTest, ARefusalOfTheMomentIsToldIfALaterPassIsRefusedToo) {
    enforcer_.settings[task] = all;
    enforcer_.answer = Outcome::no_cpu;
    EXPECT_EQ(kinds(run(change(task, all, CpuSet{1}))), Kinds{});
    EXPECT_EQ(kinds(run(change(task, all, CpuSet{1}))), Kinds{}) << "the same pass";
    EXPECT_EQ(executor_.refusals().size(), 1U) << "status shows it at once";
    executor_.begin_pass();
    executor_.expect_changes({.of_tasks = true, .of_queues = true});
    EXPECT_EQ(kinds(run(change(task, all, CpuSet{1}))), Kinds{}) << "CPUs change still";
    executor_.expect_changes({});
    EXPECT_EQ(kinds(run(change(task, all, CpuSet{1}))), Kinds{Notice::Kind::refused});
    executor_.begin_pass();
    EXPECT_EQ(kinds(run(change(task, all, CpuSet{1}))), Kinds{}) << "told once";
}

TEST_F(ExecutorTest, MoreRefusalsThanAreRememberedAreToldAllTheSame) {
    enforcer_.answer = Outcome::no_cpu;
    std::size_t told = 0;
    for (int pass = 0; pass < 2; ++pass) {
        executor_.begin_pass();
        for (int i = 1; i <= 2000; ++i)
            told += kinds(run(change(TaskMask{{i, 1}, i, "crowd"}, all, CpuSet{1}))).size();
    }
    EXPECT_GT(told, 1000U);
}

TEST_F(ExecutorTest, AnInterruptIsNotTakenForAManagedOneWhileItsLineIsTakenDown) {
    enforcer_.settings[irq] = all;
    enforcer_.answer = Outcome::immovable;
    executor_.expect_changes({.of_tasks = false, .of_queues = true});
    EXPECT_EQ(kinds(run(change(irq, all, CpuSet{1}))), Kinds{});
    EXPECT_FALSE(executor_.refusals().is_permanent(irq));
    executor_.expect_changes({});
    EXPECT_EQ(kinds(run(change(irq, all, CpuSet{1}))), Kinds{Notice::Kind::refused});
    EXPECT_TRUE(executor_.refusals().is_permanent(irq));
}

TEST_F(ExecutorTest, WithCpusOfflineTheUnfilteredMaskIsTheOriginal) {
    topology_.online = {0, 1};
    enforcer_.settings[task] = all; // what its status file says
    run(change(task, CpuSet{0, 1}, CpuSet{1}));
    ASSERT_TRUE(on_disk(task));
    EXPECT_EQ(on_disk(task)->original, Setting{all}) << "offline CPUs come back with it";
}

TEST_F(ExecutorTest, AnOriginalIsRestoredOnlyWhereTheSettingIsStillOurs) {
    hold(task, all, CpuSet{1});
    hold(irq, CpuSet{0, 1}, CpuSet{2});
    enforcer_.settings[irq] = CpuSet{3};
    EXPECT_EQ(executor_.restore(task, all).applied.outcome, Outcome::done);
    const auto foreign = executor_.restore(irq, all);
    EXPECT_EQ(foreign.applied.outcome, Outcome::foreign);
    ASSERT_EQ(kinds(foreign), Kinds{Notice::Kind::foreign});
    EXPECT_EQ(foreign.notices[0].from, Setting{CpuSet{3}});
    EXPECT_EQ(enforcer_.settings.at(task), Setting{all});
    EXPECT_EQ(enforcer_.settings.at(irq), Setting{CpuSet{3}}) << "somebody else's by now";
    EXPECT_EQ(journal_.size(), 0U) << "both are done with";
    ASSERT_EQ(enforcer_.done.size(), 1U);
    EXPECT_TRUE(enforcer_.done.front().restore);
}

TEST_F(ExecutorTest, ARestoreInAPlanOverwritesNoForeignMaskEither) {
    hold(task, all, CpuSet{1});
    enforcer_.settings[task] = CpuSet{2}; // taskset by an administrator, after the plan was made
    const auto carried = run(change(task, CpuSet{1}, all, true));
    EXPECT_EQ(carried.applied.outcome, Outcome::foreign);
    EXPECT_EQ(enforcer_.settings.at(task), Setting{CpuSet{2}});
    EXPECT_FALSE(on_disk(task));
    EXPECT_TRUE(enforcer_.done.empty());
}

TEST_F(ExecutorTest, OursIsWhatWasAskedOrGrantedAsFarAsCpusAreOnline) {
    struct Case {
        CpuSet asked, granted, present;
        bool ours;
    };
    const CpuSet online{0, 1, 2};
    for (const auto& [asked, granted, present, ours] :
         {Case{{1, 2}, {1}, {1}, true}, Case{{1, 2}, {1}, {1, 2}, true}, Case{{1, 2}, {1}, {2}, false},
          Case{{1, 3}, {1, 3}, {1}, true}, Case{{1}, {1}, {1, 3}, true}, Case{{1}, {1}, {0, 1, 2}, false}}) {
        ASSERT_TRUE(journal_.remember(task, all, asked, "p"));
        ASSERT_TRUE(journal_.confirm(task, granted));
        enforcer_.settings[task] = present;
        EXPECT_EQ(executor_.restore(task, online).applied.outcome, ours ? Outcome::done : Outcome::foreign)
            << asked.to_list() << " / " << granted.to_list() << " / " << present.to_list();
    }
}

TEST_F(ExecutorTest, FlowCountsAreComparedAsNumbers) {
    const FlowTable table{"devices/d", 0, "eth0"};
    hold(table, FlowCount{0}, FlowCount{32768});
    enforcer_.settings[table] = FlowCount{65536};
    EXPECT_EQ(executor_.restore(table, all).applied.outcome, Outcome::foreign);
    EXPECT_EQ(enforcer_.settings.at(table), Setting{FlowCount{65536}}) << "somebody else wants more";
    hold(table, FlowCount{0}, FlowCount{32768});
    EXPECT_EQ(executor_.restore(table, all).applied.outcome, Outcome::done);
    EXPECT_EQ(enforcer_.settings.at(table), Setting{FlowCount{0}});
}

TEST_F(ExecutorTest, OfWhatIsGoneTheRecordIsForgottenAndOfWhatRefusesItIsKept) {
    hold(task, all, CpuSet{1});
    enforcer_.settings.clear();
    EXPECT_EQ(executor_.restore(task, all).applied.outcome, Outcome::gone);
    EXPECT_EQ(journal_.size(), 0U);
    EXPECT_TRUE(enforcer_.done.empty());

    hold(task, all, CpuSet{1});
    enforcer_.answer = Outcome::not_permitted;
    const auto refused = executor_.restore(task, all);
    EXPECT_EQ(refused.applied.outcome, Outcome::not_permitted);
    EXPECT_EQ(kinds(refused), Kinds{Notice::Kind::not_put_back});
    EXPECT_TRUE(on_disk(task)) << "a later daemon may succeed";
}

TEST_F(ExecutorTest, WhenNothingCanBeReadTheRecordIsKept) {
    const Subject unit = UnitCpuset{"a.service"};
    hold(task, all, CpuSet{1});
    hold(unit, CpuSet{}, CpuSet{1});
    enforcer_.unknown = true; // no descriptor left; systemd does not answer
    for (const Subject& subject : {Subject{task}, unit}) {
        const auto carried = executor_.restore(subject, all);
        EXPECT_FALSE(took_effect(carried.applied.outcome));
        EXPECT_EQ(kinds(carried), Kinds{Notice::Kind::not_put_back});
        EXPECT_TRUE(on_disk(subject)) << to_string(subject);
    }
    enforcer_.unknown = false;
    for (const Subject& subject : {Subject{task}, unit})
        EXPECT_EQ(executor_.restore(subject, all).applied.outcome, Outcome::done);
}

TEST_F(ExecutorTest, ATaskThatInheritedOurMaskGetsItsCreatorsOriginal) {
    hold(task, all, CpuSet{1});
    const TaskMask child{{20, 200}, 20, "child"};
    EXPECT_FALSE(executor_.inherited(child, all, 10, all)) << "it may run everywhere: it inherited nothing";
    EXPECT_FALSE(executor_.inherited(child, CpuSet{2}, 10, all)) << "a mask of its own";
    EXPECT_FALSE(executor_.inherited(child, CpuSet{1}, 11, all)) << "another creator";
    EXPECT_EQ(executor_.inherited(child, CpuSet{1}, 10, all), (state::MaskSource{all, "p"}));

    ASSERT_TRUE(executor_.record_inherited(child, CpuSet{1}, 10, all));
    EXPECT_EQ(on_disk(child), (UndoRecord{all, CpuSet{1}, CpuSet{1}, "p"}));
    EXPECT_FALSE(executor_.inherited(child, CpuSet{1}, 10, all)) << "now it has a record of its own";
    EXPECT_TRUE(executor_.inherited(TaskMask{{30, 300}, 30, "grandchild"}, CpuSet{1}, 20, all))
        << "and may pass the mask on itself";
    ASSERT_EQ(run(change(child, CpuSet{1}, CpuSet{2})).applied.outcome, Outcome::done);
    EXPECT_EQ(on_disk(child)->original, Setting{all}) << "and not the mask it was born with";
}

TEST_F(ExecutorTest, AtTheEndAnInheritedMaskIsPutBackAndItsOwnChildrenAreFound) {
    hold(task, all, CpuSet{1});
    const TaskMask child{{20, 200}, 20, "child"};
    const TaskMask grandchild{{30, 300}, 30, "grandchild"};
    const auto source = executor_.inherited(child, CpuSet{1}, 10, all);
    ASSERT_TRUE(source);
    EXPECT_EQ(executor_.put_back_inherited(child, CpuSet{1}, *source).applied.outcome, Outcome::done);
    EXPECT_EQ(enforcer_.settings.at(child), Setting{all});
    EXPECT_TRUE(executor_.inherited(grandchild, CpuSet{1}, 20, all)) << "born before its parent was put back";
    enforcer_.answer = Outcome::gone;
    EXPECT_EQ(executor_.put_back_inherited(grandchild, CpuSet{1}, *source).applied.outcome, Outcome::gone);
}

/// An interface whose driver resets its interrupts when its number of queues changes.
} // namespace
} // namespace affinityd::enforcer
