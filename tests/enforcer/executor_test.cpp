// SPDX-License-Identifier: Apache-2.0
#include "enforcer/executor.hpp"
#include "fake_enforcer.hpp"
#include "support/full_disk.hpp"
#include "support/tree.hpp"

#include <cerrno>
#include <filesystem>

#include <gtest/gtest.h>

namespace affinityd::enforcer {
namespace {

using machine::Setting;
using machine::Subject;
using planner::Action;
using planner::UndoRecord;
using Kind = Notice::Kind;
using namespace std::chrono_literals;

const machine::TaskMask task{{10, 100}, 10, "main"}, thread{{11, 101}, 10, "thread"};
const machine::IrqMask irq{"devices/d", "eth0-TxRx-0", 0, 30};
const machine::SteeringMask map{"devices/d", machine::Direction::rx, 0, "eth0", 2};
const CpuSet all = CpuSet::range(0, 3);

class ExecutorTest : public testing::Test {
  protected:
    ExecutorTest() { topology_.possible = topology_.present = topology_.online = all; }
    void make() {
        executor_.emplace(*state::Journal::open(tree_.path("undo.journal")), enforcer_,
                          [this] { return now_; });
    }
    std::optional<Carried> run(const Subject& subject, const Setting& from, const Setting& to) {
        const auto record = executor_->journal().find(subject);
        return executor_->run({subject, from, to, "p", {}, false, record}, {topology_, others_});
    }
    void hold(const Subject& subject, const Setting& ours) {
        ASSERT_TRUE(executor_->journal().put(subject, {all, ours, ours, "p"}));
        enforcer_.settings[subject] = ours;
    }
    /// As a daemon that starts now would read it.
    [[nodiscard]] std::optional<UndoRecord> on_disk(const Subject& subject) const {
        const auto file = tree_.path("undo.journal"), copy = file + ".copy";
        std::filesystem::copy_file(file, copy, std::filesystem::copy_options::overwrite_existing);
        const auto record = state::Journal::open(copy)->find(subject);
        return record ? std::optional(*record) : std::nullopt;
    }
    static std::vector<Kind> kinds(const std::optional<Carried>& carried) {
        std::vector<Kind> kinds;
        if (carried)
            for (const auto& notice : carried->notices)
                kinds.push_back(notice.kind);
        return kinds;
    }
    test::Tree tree_;
    FakeEnforcer enforcer_;
    Executor::Clock::time_point now_{90s};
    std::optional<Executor> executor_;
    topology::Topology topology_;
    std::function<std::vector<unsigned>()> others_;
};

TEST(Outcomes, OfEachErrno) {
    using enum Outcome;
    const struct {
        int code;
        Outcome of_task, of_irq, of_map;
    } cases[] = {
        {0, done, done, done},
        {ESRCH, gone, gone, gone},
        {ENOENT, gone, gone, gone},
        {EPERM, not_permitted, immovable, not_permitted},
        {EACCES, not_permitted, not_permitted, not_permitted},
        {EIO, failed, immovable, failed},
        {EINVAL, no_cpu, no_cpu, no_cpu},
        {EOVERFLOW, no_cpu, no_cpu, no_cpu},
        {ENOSPC, full, full, full},
        {EBUSY, deadline, busy, busy},
        {EAGAIN, busy, busy, busy},
        {ENODEV, failed, failed, failed},
    };
    for (const auto& [code, of_task, of_irq, of_map] : cases) {
        EXPECT_EQ(outcome_of(task, code), of_task) << code;
        EXPECT_EQ(outcome_of(irq, code), of_irq) << code;
        EXPECT_EQ(outcome_of(map, code), of_map) << code;
    }
}

/// Which record a change leaves, by its outcome and by the record before it.
TEST_F(ExecutorTest, RecordsByOutcome) {
    using enum Outcome;
    const UndoRecord first{all, CpuSet{1}, CpuSet{1}, "p"}, former{all, CpuSet{2}, CpuSet{2}, "p"},
        second{all, CpuSet{1}, CpuSet{1}, "p", CpuSet{2}};
    const UndoRecord unmade{all, CpuSet{1}, CpuSet{1}, "p", all};
    const struct {
        const char* what;
        Subject subject;
        Outcome outcome;
        bool is_second; ///< the subject has a record already
        std::optional<UndoRecord> left;
        std::vector<Kind> told;
    } cases[] = {
        {"first change", task, done, false, first, {}},
        {"second change", task, done, true, second, {}},
        {"first change is refused", task, not_permitted, false, std::nullopt, {Kind::refused}},
        {"second change is refused", irq, failed, true, former, {Kind::refused}},
        {"the task has gone", task, gone, false, std::nullopt, {}},
        {"the task has gone after a change", task, gone, true, std::nullopt, {}},
        {"a thread has gone, or is the main thread now", thread, gone, false, unmade, {}},
        {"an interrupt with its next arrival", irq, pending, false, first, {}},
        {"an interrupt that never moves", irq, immovable, false, std::nullopt, {Kind::refused}},
    };
    for (const auto& [what, subject, outcome, is_second, left, told] : cases) {
        std::filesystem::remove(tree_.path("undo.journal"));
        enforcer_ = {};
        make();
        enforcer_.settings[subject] = all;
        if (is_second) hold(subject, CpuSet{2});
        enforcer_.answer = outcome;
        std::optional<UndoRecord> during;
        enforcer_.before_apply = [&](const Action&) { during = on_disk(subject); };
        const auto carried = run(subject, is_second ? CpuSet{2} : all, CpuSet{1});
        EXPECT_EQ(during, is_second ? second : unmade) << what << ": on disk before the change";
        EXPECT_EQ(kinds(carried), told) << what;
        EXPECT_EQ(on_disk(subject), left) << what;
        EXPECT_EQ(executor_->counts()[static_cast<std::size_t>(outcome)], 1U) << what;
    }
}

/// An original is restored if and only if the subject is set to a value of ours.
TEST_F(ExecutorTest, RestoresOnlyWhatIsOurs) {
    const UndoRecord record{CpuSet{0}, CpuSet{1}, CpuSet{1, 5}, "p", CpuSet{2}};
    const struct {
        Setting present;
        Outcome outcome;
    } cases[] = {
        {CpuSet{1}, Outcome::done},    // asked
        {CpuSet{1, 5}, Outcome::done}, // granted
        {CpuSet{1, 6}, Outcome::done}, // as far as CPUs are online
        {CpuSet{2}, Outcome::done},    // before
        {CpuSet{3}, Outcome::foreign}, // another program has set it
        {CpuSet{1, 2}, Outcome::foreign},
    };
    make();
    for (const auto& [present, outcome] : cases) {
        enforcer_.settings[task] = present;
        const auto held = executor_->journal().put(task, record);
        const auto carried = executor_->restore(task, *held, all);
        EXPECT_EQ(carried.applied.outcome, outcome) << present.to_string();
        EXPECT_EQ(enforcer_.settings[task], outcome == Outcome::done ? Setting(CpuSet{0}) : present);
        EXPECT_EQ(executor_->journal().find(task), nullptr) << "in force no more";
    }
    enforcer_.unknown = true;
    const auto held = executor_->journal().put(task, record);
    EXPECT_EQ(kinds(executor_->restore(task, *held, all)), std::vector{Kind::not_put_back});
    EXPECT_NE(executor_->journal().find(task), nullptr) << "for a later daemon";
}

TEST_F(ExecutorTest, DoesNothingThatCannotBeWrittenDown) {
    make();
    enforcer_.settings[task] = all;
    const test::FullDisk full;
    const auto carried = run(task, all, CpuSet{1});
    EXPECT_EQ(carried->applied.outcome, Outcome::unrecorded);
    EXPECT_EQ(kinds(carried), std::vector{Kind::journal_failed});
    EXPECT_TRUE(enforcer_.done.empty());
}

TEST_F(ExecutorTest, LeavesAFightForLongerEachTime) {
    make();
    const struct {
        Subject subject;
        std::chrono::seconds rest;
    } cases[] = {{task, 10s}, {irq, 60s}};
    for (auto [subject, rest] : cases) {
        hold(subject, CpuSet{1});
        const auto put_right = [&] { return kinds(run(subject, all, CpuSet{1})); };
        for (int i = 0; i < 4; ++i)
            EXPECT_EQ(put_right(), std::vector{Kind::corrected});
        for (int round = 0; round < 3; ++round, rest *= 2) {
            EXPECT_EQ(put_right(), (std::vector{Kind::corrected, Kind::fight}));
            now_ += rest - 1s;
            EXPECT_FALSE(run(subject, all, CpuSet{1})) << "it rests";
            executor_->expect_changes(true);
            EXPECT_TRUE(run(subject, all, CpuSet{1})) << "the kernel may have reset it";
            executor_->begin_stop();
            now_ += 1s;
        }
        EXPECT_FALSE(executor_->is_put_off({subject, CpuSet{1}, all, "", {}, true}))
            << "a restore waits for nothing";
        now_ += 24h;
        EXPECT_EQ(put_right(), std::vector{Kind::corrected}) << "far apart is no fight";
    }
}

TEST_F(ExecutorTest, DivertsAnInterruptWhoseCpuIsFull) {
    make();
    enforcer_.settings[irq] = all;
    enforcer_.full = CpuSet{1, 2};
    others_ = [] { return std::vector<unsigned>{2, 3}; };
    EXPECT_EQ(kinds(run(irq, all, CpuSet{1})), std::vector{Kind::diverted});
    EXPECT_EQ(enforcer_.settings[irq], Setting(CpuSet{3}));
    EXPECT_EQ(executor_->journal().find(irq)->original, Setting(all));
    EXPECT_FALSE(run(irq, CpuSet{3}, CpuSet{1})) << "for a while";
    EXPECT_TRUE(run(irq, CpuSet{3}, CpuSet{0}));
    EXPECT_EQ(executor_->rest(irq), nullptr) << "it has what is wanted now, on a CPU with room";
    EXPECT_EQ(kinds(run(irq, CpuSet{0}, CpuSet{1})), std::vector{Kind::diverted});
    now_ += 11min;
    EXPECT_TRUE(run(irq, CpuSet{3}, CpuSet{1}));
    enforcer_.full = all;
    now_ += 11min;
    EXPECT_EQ(kinds(run(irq, CpuSet{3}, CpuSet{1})), std::vector{Kind::refused}) << "told once";
    EXPECT_EQ(executor_->journal().find(irq)->asked, Setting(CpuSet{3})) << "what it had stays ours";
}

TEST_F(ExecutorTest, TellsRefusalsOnceAndAsksAgainByHand) {
    make();
    enforcer_.settings[irq] = all;
    enforcer_.answer = Outcome::immovable;
    EXPECT_EQ(kinds(run(irq, all, CpuSet{1})), std::vector{Kind::refused});
    EXPECT_FALSE(run(irq, all, CpuSet{1})) << "a managed interrupt never moves";
    executor_->begin_anew();
    EXPECT_EQ(kinds(run(irq, all, CpuSet{1})), std::vector{Kind::refused}) << "asked and told again";
    enforcer_.answer = Outcome::busy;
    EXPECT_EQ(kinds(run(map, all, CpuSet{1})), std::vector<Kind>{}) << "of the moment";
    executor_->begin_pass();
    EXPECT_EQ(kinds(run(map, all, CpuSet{1})), std::vector{Kind::refused}) << "told with the next pass";
    EXPECT_EQ(executor_->troubles().size(), 2U);
    enforcer_.settings.clear();
    executor_->drop_gone(10);
    EXPECT_TRUE(executor_->troubles().empty());
}

} // namespace
} // namespace affinityd::enforcer
