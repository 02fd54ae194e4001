// SPDX-License-Identifier: Apache-2.0
#include "app/executor.hpp"
#include "simulated.hpp"

#include <csignal>

#include <sys/resource.h>

namespace affinityd::app {
namespace {

using enforcer::Applied;
using enforcer::Outcome;
using planner::Action;
using planner::IrqMask;
using planner::TaskMask;

const TaskMask task{{10, 100}, 10, "a"};
const IrqMask irq{"devices/d", "eth0-TxRx-0", 30};
const CpuSet all = CpuSet::range(0, 3);

topology::Topology four_cpus() {
    topology::Topology topology;
    topology.possible = topology.present = topology.online = all;
    return topology;
}

Action change(const planner::Subject& subject, const CpuSet& from, const CpuSet& to, bool restore = false) {
    return {subject, from, to, "p", "test", restore};
}

/// Answers as told and remembers what it was asked to do.
class FakeEnforcer final : public enforcer::Enforcer {
  public:
    Applied apply(const Action& action) override {
        done.push_back(action);
        if (answer == Outcome::done)
            masks[planner::to_string(action.subject)] = granted.empty() ? action.to : granted;
        if (!took_effect(answer)) return {answer, {}, 5};
        return {answer, granted.empty() ? action.to : granted, 0};
    }
    std::optional<CpuSet> present(const planner::Subject& subject) override {
        const auto found = masks.find(planner::to_string(subject));
        return found == masks.end() ? std::nullopt : std::optional(found->second);
    }
    void move_memory(enforcer::MemoryMove) override {}
    std::vector<enforcer::MemoryMoved> take_moved() override { return {}; }
    [[nodiscard]] bool acts() const override { return live; }

    std::vector<Action> done;
    std::map<std::string, CpuSet> masks;
    Outcome answer = Outcome::done;
    CpuSet granted;
    bool live = true;
};

class ExecutorTest : public testing::Test {
  protected:
    test::Tree tree_;
    state::Journal journal_ = *state::Journal::open(tree_.path("undo.journal"));
    FakeEnforcer enforcer_;
    test::ReadableLog log_;
    Executor executor_{journal_, enforcer_, log_.log()};
    topology::Topology topology_ = four_cpus();

    void hold(const planner::Subject& subject, const CpuSet& original, const CpuSet& ours) {
        ASSERT_TRUE(journal_.remember(subject, original, ours, "p"));
        ASSERT_TRUE(journal_.confirm(subject, ours));
    }
    [[nodiscard]] const planner::Held* on_disk(const planner::Subject& subject) {
        read_again_ = std::make_unique<state::Journal>(*state::Journal::open(tree_.path("undo.journal")));
        return read_again_->find(subject);
    }

  private:
    std::unique_ptr<state::Journal> read_again_;
};

TEST_F(ExecutorTest, AChangeIsOnDiskWithWhatWasBeforeAndWhatWasGranted) {
    enforcer_.granted = CpuSet{2};
    const auto applied = executor_.run(change(task, all, {2, 3}), topology_);
    EXPECT_EQ(applied.outcome, Outcome::done);
    const auto* held = on_disk(task);
    ASSERT_NE(held, nullptr);
    EXPECT_EQ(*held, (planner::Held{all, {2, 3}, {2}, "p"}));
    EXPECT_EQ(executor_.counts()[static_cast<std::size_t>(Outcome::done)], 1U);
}

TEST_F(ExecutorTest, WhatCannotBeWrittenDownIsNotDone) {
    // A file size limit makes the journal's writes fail as a full disk does.
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto handler = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit none{0, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
    const auto first = executor_.run(change(task, all, CpuSet{1}), topology_);
    const auto second = executor_.run(change(irq, all, CpuSet{1}), topology_);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    ::signal(SIGXFSZ, handler);
    EXPECT_EQ(first.outcome, Outcome::failed);
    EXPECT_EQ(first.code, EFBIG);
    EXPECT_EQ(second.outcome, Outcome::failed);
    EXPECT_TRUE(enforcer_.done.empty()) << "nothing may be changed that could not be undone";
    EXPECT_EQ(journal_.find(task), nullptr);
    EXPECT_EQ(log_.times("nothing is changed until it can be written"), 1U)
        << "the same fault is not told for each task";
    EXPECT_EQ(executor_.run(change(task, all, CpuSet{1}), topology_).outcome, Outcome::done)
        << "as soon as it can be written";
}

TEST_F(ExecutorTest, ADryRunWritesNothingDown) {
    enforcer_.live = false;
    EXPECT_EQ(executor_.run(change(task, all, CpuSet{1}), topology_).outcome, Outcome::done);
    EXPECT_EQ(journal_.size(), 0U);
    EXPECT_EQ(on_disk(task), nullptr);
}

TEST_F(ExecutorTest, AFailedFirstChangeIsTakenBack) {
    for (const auto outcome :
         {Outcome::not_permitted, Outcome::deadline, Outcome::no_cpu, Outcome::gone, Outcome::failed}) {
        enforcer_.answer = outcome;
        EXPECT_EQ(executor_.run(change(task, all, CpuSet{1}), topology_).outcome, outcome);
        EXPECT_EQ(on_disk(task), nullptr) << to_string(outcome);
    }
}

TEST_F(ExecutorTest, AFailedSecondChangeLeavesTheRecordOfTheFirst) {
    ASSERT_EQ(executor_.run(change(task, all, CpuSet{1}), topology_).outcome, Outcome::done);
    enforcer_.answer = Outcome::not_permitted;
    ASSERT_EQ(executor_.run(change(task, CpuSet{1}, CpuSet{2}), topology_).outcome, Outcome::not_permitted);
    const auto* held = on_disk(task);
    ASSERT_NE(held, nullptr) << "the first change is still in force";
    EXPECT_EQ(*held, (planner::Held{all, {1}, {1}, "p"}));
}

TEST_F(ExecutorTest, OfATaskThatIsGoneNothingIsKept) {
    ASSERT_EQ(executor_.run(change(task, all, CpuSet{1}), topology_).outcome, Outcome::done);
    enforcer_.answer = Outcome::gone;
    ASSERT_EQ(executor_.run(change(task, CpuSet{1}, CpuSet{2}), topology_).outcome, Outcome::gone);
    EXPECT_EQ(on_disk(task), nullptr);
    EXPECT_TRUE(executor_.refusals().empty()) << "that a task ends is no refusal";
    EXPECT_EQ(log_.text().find("could not"), std::string::npos);
}

TEST_F(ExecutorTest, AnInterruptThatCanNeverMoveIsAskedOnce) {
    enforcer_.answer = Outcome::immovable;
    EXPECT_EQ(executor_.run(change(irq, all, CpuSet{1}), topology_).outcome, Outcome::immovable);
    enforcer_.answer = Outcome::done;
    EXPECT_EQ(executor_.run(change(irq, all, CpuSet{2}), topology_).outcome, Outcome::immovable);
    EXPECT_EQ(enforcer_.done.size(), 1U);
    EXPECT_EQ(executor_.refusals().size(), 1U) << "and status goes on telling";
    EXPECT_EQ(on_disk(irq), nullptr);
}

TEST_F(ExecutorTest, AnInterruptThatIsBusyIsAskedAgain) {
    enforcer_.answer = Outcome::busy;
    EXPECT_EQ(executor_.run(change(irq, all, CpuSet{1}), topology_).outcome, Outcome::busy);
    EXPECT_EQ(executor_.refusals().count("IRQ 30 (eth0-TxRx-0)"), 1U);
    enforcer_.answer = Outcome::done;
    EXPECT_EQ(executor_.run(change(irq, all, CpuSet{1}), topology_).outcome, Outcome::done);
    EXPECT_TRUE(executor_.refusals().empty()) << "what works is no longer refused";
}

TEST_F(ExecutorTest, RefusalsAreBounded) {
    enforcer_.answer = Outcome::not_permitted;
    for (int i = 1; i <= 3000; ++i)
        executor_.run(change(TaskMask{{i, 1}, i, "storm"}, all, CpuSet{1}), topology_);
    EXPECT_LE(executor_.refusals().size(), 1000U);
    EXPECT_EQ(executor_.counts()[static_cast<std::size_t>(Outcome::not_permitted)], 3000U);
}

TEST_F(ExecutorTest, WithCpusOfflineTheUnfilteredMaskIsTheOriginal) {
    topology_.online = {0, 1};
    enforcer_.masks[planner::to_string(task)] = all; // what its status file says
    executor_.run(change(task, {0, 1}, CpuSet{1}), topology_);
    ASSERT_NE(on_disk(task), nullptr);
    EXPECT_EQ(on_disk(task)->original, all) << "offline CPUs come back with it";
}

TEST_F(ExecutorTest, PutBackOnlyWhereTheMaskIsStillOurs) {
    hold(task, all, CpuSet{1});
    hold(irq, CpuSet{0, 1}, CpuSet{2});
    enforcer_.masks = {{planner::to_string(task), CpuSet{1}}, {planner::to_string(irq), CpuSet{3}}};
    for (const auto& entry : journal_.entries())
        EXPECT_EQ(executor_.restore(entry, all), std::holds_alternative<TaskMask>(entry.subject));
    EXPECT_EQ(enforcer_.masks.at(planner::to_string(task)), all);
    EXPECT_EQ(enforcer_.masks.at(planner::to_string(irq)), CpuSet{3}) << "somebody else's by now";
    EXPECT_EQ(journal_.size(), 0U) << "both are done with";
    ASSERT_EQ(enforcer_.done.size(), 1U);
    EXPECT_TRUE(enforcer_.done.front().restore);
}

TEST_F(ExecutorTest, WhatIsGoneIsForgottenAndWhatRefusesIsKept) {
    hold(task, all, CpuSet{1});
    EXPECT_FALSE(executor_.restore(journal_.entries().front(), all));
    EXPECT_EQ(journal_.size(), 0U);
    EXPECT_TRUE(enforcer_.done.empty());

    hold(task, all, CpuSet{1});
    enforcer_.masks[planner::to_string(task)] = CpuSet{1};
    enforcer_.answer = Outcome::not_permitted;
    EXPECT_FALSE(executor_.restore(journal_.entries().front(), all));
    EXPECT_NE(on_disk(task), nullptr) << "a later daemon may succeed";
    EXPECT_EQ(log_.times("could not be put back"), 1U);
}

TEST_F(ExecutorTest, ANewbornGetsItsCreatorsOriginal) {
    hold(task, all, CpuSet{1});
    const TaskMask child{{20, 200}, 20, "child"};
    EXPECT_FALSE(executor_.inherited(child, all, 10, all)) << "it may run everywhere: nothing was given on";
    EXPECT_FALSE(executor_.inherited(child, CpuSet{2}, 10, all)) << "a mask of its own";
    EXPECT_FALSE(executor_.inherited(child, CpuSet{1}, 11, all)) << "another creator";
    const auto held = executor_.inherited(child, CpuSet{1}, 10, all);
    ASSERT_TRUE(held);
    EXPECT_EQ(held->original, all);

    executor_.adopt_newborn(child, CpuSet{1}, 10, all);
    ASSERT_NE(on_disk(child), nullptr);
    EXPECT_EQ(on_disk(child)->original, all);
    EXPECT_EQ(on_disk(child)->asked, CpuSet{1});
    EXPECT_FALSE(executor_.inherited(child, CpuSet{1}, 10, all)) << "now it has a past of its own";
    EXPECT_TRUE(executor_.inherited(TaskMask{{30, 300}, 30, "grandchild"}, CpuSet{1}, 20, all))
        << "and may give it on itself";
}

TEST_F(ExecutorTest, AnAdoptedNewbornThatIsPinnedKeepsTheFirstOriginal) {
    hold(task, all, CpuSet{1});
    const TaskMask child{{20, 200}, 20, "child"};
    executor_.adopt_newborn(child, CpuSet{1}, 10, all);
    ASSERT_EQ(executor_.run(change(child, CpuSet{1}, CpuSet{2}), topology_).outcome, Outcome::done);
    EXPECT_EQ(on_disk(child)->original, all) << "and not the mask it was born with";
}

TEST_F(ExecutorTest, AtTheEndANewbornIsPutBackAndItsOwnChildrenAreFound) {
    hold(task, all, CpuSet{1});
    const TaskMask child{{20, 200}, 20, "child"};
    const TaskMask grandchild{{30, 300}, 30, "grandchild"};
    const auto held = executor_.inherited(child, CpuSet{1}, 10, all);
    ASSERT_TRUE(held);
    EXPECT_TRUE(executor_.put_back_newborn(child, CpuSet{1}, *held));
    EXPECT_EQ(enforcer_.masks.at(planner::to_string(planner::Subject(child))), all);
    EXPECT_TRUE(executor_.inherited(grandchild, CpuSet{1}, 20, all)) << "born before its parent was put back";
    enforcer_.answer = Outcome::gone;
    EXPECT_FALSE(executor_.put_back_newborn(grandchild, CpuSet{1}, *held));
}

} // namespace
} // namespace affinityd::app
