// SPDX-License-Identifier: Apache-2.0
#include "enforcer/backoff.hpp"
#include "enforcer/executor.hpp"
#include "fake_enforcer.hpp"
#include "subjects.hpp"

#include <gtest/gtest.h>

namespace affinityd::enforcer {
namespace {

using machine::Setting;
using machine::Subject;
using machine::TaskMask;
using planner::Action;
using test::all;
using test::four_cpus;
using test::irq;
using test::task;
using namespace std::chrono_literals;

/// An executor with a clock of its own.
class BackoffTest : public testing::Test {
  protected:
    Backoff::Clock::time_point now_{1000h};
    state::Journal journal_ = *state::Journal::open("");
    FakeEnforcer enforcer_;
    Executor executor_{journal_, enforcer_, [this] { return now_; }};
    topology::Topology topology_ = four_cpus();

    /// Puts the subject right as a pass does. No value: it was put off.
    std::optional<Carried> correct(const Subject& subject, const CpuSet& present = all,
                                   const CpuSet& wanted = {1}) {
        enforcer_.settings[subject] = present;
        return executor_.run({subject, present, wanted, "p", {}, false}, {topology_, others_});
    }
    [[nodiscard]] static bool tells(const std::optional<Carried>& carried, Notice::Kind kind) {
        return carried && std::ranges::any_of(carried->notices,
                                              [&](const Notice& notice) { return notice.kind == kind; });
    }
    std::function<std::vector<unsigned>()> others_;
};

TEST_F(BackoffTest, AFightIsLeftAndTheRestsGrow) {
    for (const auto& [subject, first] : {std::pair<Subject, std::chrono::seconds>{task, 10s}, {irq, 60s}}) {
        ASSERT_TRUE(correct(subject)) << "the first change";
        for (int i = 0; i < 4; ++i) {
            now_ += 1s;
            EXPECT_FALSE(tells(correct(subject), Notice::Kind::fight));
        }
        now_ += 1s;
        const auto last = correct(subject, CpuSet{3});
        ASSERT_TRUE(tells(last, Notice::Kind::fight)) << to_string(subject);
        EXPECT_EQ(last->notices.back().from, Setting{CpuSet{3}}) << "what somebody else sets";
        EXPECT_EQ(enforcer_.settings.at(subject), Setting{CpuSet{1}}) << "put right once more";
        auto rest = first;
        for (int round = 0; round < 10; ++round) {
            EXPECT_EQ(executor_.note(subject)->kind, Backoff::Note::Kind::fought_over);
            now_ += rest - 1s;
            EXPECT_FALSE(correct(subject)) << "rest " << round;
            now_ += 1s;
            EXPECT_TRUE(tells(correct(subject), Notice::Kind::fight)) << "at once again";
            if (round < 6) rest *= 2;
        }
        EXPECT_EQ(rest, first * 64) << "the longest";
    }
}

TEST_F(BackoffTest, CorrectionsFarApartAreNoFight) {
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(correct(task)) << i;
        now_ += 11min;
    }
    EXPECT_FALSE(executor_.note(task));
}

TEST_F(BackoffTest, AnotherWishIsNoCorrection) {
    for (unsigned i = 0; i < 100; ++i)
        ASSERT_TRUE(correct(task, all, CpuSet{i % 2})) << "the plan changes, and nobody fights";
}

TEST_F(BackoffTest, WhatTheKernelResetsIsNoFight) {
    executor_.expect_changes({true, true});
    for (int i = 0; i < 20; ++i) // a link that goes down and up
        ASSERT_TRUE(correct(irq)) << i;
    executor_.expect_changes({});
    for (int i = 0; i < 5; ++i)
        ASSERT_TRUE(correct(irq));
    EXPECT_FALSE(correct(irq));
    executor_.expect_changes({true, true});
    EXPECT_TRUE(correct(irq)) << "it may have been reset by its driver, not by the other writer";
}

TEST_F(BackoffTest, WhatIsRefusedAgainAndAgainIsNoFight) {
    ASSERT_TRUE(correct(irq));
    enforcer_.answer = Outcome::busy;
    for (int i = 0; i < 20; ++i) {
        const auto carried = correct(irq);
        ASSERT_TRUE(carried) << i;
        EXPECT_FALSE(tells(carried, Notice::Kind::fight));
    }
}

TEST_F(BackoffTest, ARestoreDoesNotWait) {
    for (int i = 0; i < 6; ++i)
        correct(task);
    ASSERT_FALSE(correct(task));
    enforcer_.settings[task] = CpuSet{1};
    const Action restore{task, CpuSet{1}, all, "", planner::Restored::unwanted, true};
    EXPECT_FALSE(executor_.is_put_off(restore));
    EXPECT_EQ(executor_.run(restore, {topology_})->applied.outcome, Outcome::done);
    EXPECT_EQ(enforcer_.settings.at(task), Setting{all});
}

TEST_F(BackoffTest, WhoeverAsksForEverythingAnewGetsIt) {
    for (int i = 0; i < 6; ++i)
        correct(irq);
    ASSERT_FALSE(correct(irq));
    executor_.begin_anew();
    EXPECT_TRUE(correct(irq));
}

TEST_F(BackoffTest, AFullCpuIsPassedOverForTheNearest) {
    enforcer_.full = CpuSet{0, 1};
    others_ = [] { return std::vector<unsigned>{1, 2, 3}; };
    const auto carried = correct(irq, all, CpuSet{0});
    ASSERT_TRUE(carried);
    EXPECT_EQ(carried->applied.outcome, Outcome::done);
    EXPECT_EQ(enforcer_.settings.at(irq), Setting{CpuSet{2}});
    ASSERT_EQ(carried->notices.size(), 1U) << "one thing to tell, however many CPUs were tried";
    EXPECT_EQ(carried->notices[0].kind, Notice::Kind::diverted);
    EXPECT_EQ(carried->notices[0].to, Setting{CpuSet{0}});
    EXPECT_EQ(carried->notices[0].granted, Setting{CpuSet{2}});
    EXPECT_TRUE(executor_.refusals().empty());
    EXPECT_EQ(journal_.find(irq), (planner::UndoRecord{all, CpuSet{2}, CpuSet{2}, "p"}));
    EXPECT_EQ(executor_.note(irq)->kind, Backoff::Note::Kind::diverted);
    EXPECT_EQ(executor_.note(irq)->given, Setting{CpuSet{2}});

    now_ += 9min;
    EXPECT_FALSE(correct(irq, CpuSet{2}, CpuSet{0})) << "it stays there for a while";
    EXPECT_TRUE(correct(irq, CpuSet{3}, CpuSet{0})) << "unless somebody else has moved it";
    EXPECT_TRUE(correct(irq, CpuSet{2}, CpuSet{3})) << "or something else is wanted";
    now_ += 11min;
    enforcer_.full = {};
    ASSERT_TRUE(correct(irq, CpuSet{2}, CpuSet{0}));
    EXPECT_EQ(enforcer_.settings.at(irq), Setting{CpuSet{0}}) << "then it is tried anew";
}

TEST_F(BackoffTest, WithoutAnyVectorItStaysWhereItIs) {
    enforcer_.full = all;
    others_ = [] { return std::vector<unsigned>{1, 2, 3}; };
    const auto carried = correct(irq, all, CpuSet{0});
    ASSERT_TRUE(carried);
    EXPECT_EQ(carried->applied.outcome, Outcome::full);
    EXPECT_EQ(enforcer_.settings.at(irq), Setting{all});
    EXPECT_EQ(enforcer_.done.size(), 4U) << "each CPU of the policy was asked, and none twice";
    ASSERT_EQ(carried->notices.size(), 1U);
    EXPECT_EQ(carried->notices[0].kind, Notice::Kind::refused);
    EXPECT_EQ(journal_.size(), 0U);
    EXPECT_FALSE(executor_.is_put_off({irq, all, CpuSet{0}, "p", {}, false})) << "the next pass asks again";
}

TEST_F(BackoffTest, TheOtherCpusAreAskedForOnlyWhenOneIsFull) {
    bool asked = false;
    others_ = [&] {
        asked = true;
        return std::vector<unsigned>{};
    };
    correct(irq);
    EXPECT_FALSE(asked);
}

TEST_F(BackoffTest, TheLongListOfOtherCpusOfALargeMachineIsCut) {
    enforcer_.full = CpuSet::range(0, 8191);
    others_ = [] { return CpuSet::range(1, 8191).to_vector(); };
    correct(irq, all, CpuSet{0});
    EXPECT_EQ(enforcer_.done.size(), 65U);
}

TEST(Backoff, SubjectsAreBoundedAndTheOldestMakesRoom) {
    Backoff backoff;
    const auto now = Backoff::Clock::now();
    const auto fight = [&](int tid) {
        const Subject subject = TaskMask{{tid, 1}, tid, "t"};
        const planner::UndoRecord record{all, CpuSet{1}, CpuSet{1}, "p"};
        for (int i = 0; i < 5; ++i)
            backoff.correct({subject, all, CpuSet{1}, "p", {}, false}, record, now);
        return backoff.note(subject, now).has_value();
    };
    for (int tid = 1; tid <= 20000; ++tid)
        ASSERT_TRUE(fight(tid)) << tid;
    EXPECT_EQ(backoff.size(), Backoff::most_subjects);
    backoff.forget(TaskMask{{20000, 1}, 1, ""});
    EXPECT_EQ(backoff.size(), Backoff::most_subjects - 1);
}

struct Answer {
    int code;
    Outcome outcome;
};

class IrqAnswers : public testing::TestWithParam<Answer> {};

TEST_P(IrqAnswers, MeanWhatTheKernelMeans) { EXPECT_EQ(irq_outcome(GetParam().code), GetParam().outcome); }

INSTANTIATE_TEST_SUITE_P(Errno, IrqAnswers,
                         testing::Values(Answer{EIO, Outcome::immovable}, Answer{EPERM, Outcome::immovable},
                                         Answer{EINVAL, Outcome::no_cpu}, Answer{EOVERFLOW, Outcome::no_cpu},
                                         Answer{EAGAIN, Outcome::busy}, Answer{EBUSY, Outcome::busy},
                                         Answer{EACCES, Outcome::not_permitted},
                                         Answer{ENOENT, Outcome::gone}, Answer{ENOSPC, Outcome::full},
                                         Answer{ENODEV, Outcome::failed}));

TEST(SteeringAnswers, AreThoseOfInterruptsButNoneIsManaged) {
    EXPECT_EQ(steering_outcome(EPERM), Outcome::not_permitted);
    EXPECT_EQ(steering_outcome(EIO), Outcome::failed);
    EXPECT_EQ(steering_outcome(ENOENT), Outcome::gone);
}

} // namespace
} // namespace affinityd::enforcer
