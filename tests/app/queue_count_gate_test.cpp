// SPDX-License-Identifier: Apache-2.0
#include "app/queue_count_gate.hpp"
#include "enforcer/interface_queues.hpp"
#include "simulated.hpp"

namespace affinityd::app {
namespace {

using machine::Channels;
using machine::QueueCount;
using machine::Setting;
using planner::UndoRecord;
using std::chrono::seconds;
using Verdict = QueueCountGate::Verdict;

class GateTest : public testing::Test {
  protected:
    const QueueCount eth0_{"devices/a", "eth0", 2, false, 70}, eth1_{"devices/b", "eth1", 3, false, 71};
    const QueueCountGate::Terms terms_ = QueueCountGate::terms_of(seconds(600));
    QueueCountGate gate_;
    QueueCountGate::Clock::time_point now_{};
    unsigned present_ = 8;
    std::optional<UndoRecord> record_;

    static Setting queues(unsigned count) { return Channels{count, 0, 0}; }
    void wait(seconds time) { now_ += time; }
    Verdict see(const QueueCount& subject, unsigned present, unsigned wanted) {
        const Setting is = queues(present), to_be = queues(wanted);
        return gate_.see({subject, is, to_be, is == to_be, record_}, terms_, now_);
    }
    Verdict see(unsigned wanted) { return see(eth0_, present_, wanted); }
    /// As the executor does it.
    void change(unsigned to) {
        record_ = UndoRecord{record_ ? record_->original : queues(present_), queues(to), queues(to), "p"};
        present_ = to;
        gate_.changed(eth0_, queues(to), true, now_);
    }
};

TEST_F(GateTest, TermsFollowTheSetting) {
    EXPECT_EQ(terms_.stable, seconds(60));
    EXPECT_EQ(terms_.pause, seconds(600));
    EXPECT_EQ(QueueCountGate::terms_of(seconds(10)).stable, seconds(1));
}

TEST_F(GateTest, TheSameHasToBeWantedForAWhile) {
    EXPECT_EQ(see(4), Verdict::settles);
    wait(seconds(40));
    EXPECT_EQ(see(3), Verdict::settles) << "a worker has gone";
    wait(seconds(40));
    EXPECT_EQ(see(3), Verdict::settles);
    wait(seconds(20));
    EXPECT_EQ(see(3), Verdict::go);
    change(3);
    EXPECT_EQ(see(3), Verdict::in_place);
    EXPECT_EQ(gate_.verdict(eth0_), Verdict::in_place);
}

TEST_F(GateTest, WorkersThatComeAndGoResetNothing) {
    unsigned changes = 0;
    for (int minute = 0; minute < 120; ++minute) {
        if (see(minute % 3 == 0 ? 4 : 2) == Verdict::go) ++changes;
        wait(seconds(30));
    }
    EXPECT_EQ(changes, 0U);
}

TEST_F(GateTest, OneInterfaceIsChangedSeldom) {
    (void)see(4);
    wait(seconds(60));
    ASSERT_EQ(see(4), Verdict::go);
    change(4);
    (void)see(2);
    wait(seconds(599));
    EXPECT_EQ(see(2), Verdict::waits);
    wait(seconds(1));
    EXPECT_EQ(see(2), Verdict::go);
}

TEST_F(GateTest, OneAfterTheOtherSoThatABondKeepsAPort) {
    (void)see(eth0_, 8, 4);
    (void)see(eth1_, 8, 4);
    wait(seconds(60));
    ASSERT_EQ(see(eth0_, 8, 4), Verdict::go);
    gate_.changed(eth0_, queues(4), true, now_);
    EXPECT_EQ(see(eth1_, 8, 4), Verdict::waits);
    wait(seconds(60));
    EXPECT_EQ(see(eth1_, 8, 4), Verdict::go);
}

TEST_F(GateTest, AfterEachRefusalItIsAskedMoreSeldom) {
    (void)see(4);
    wait(seconds(60));
    for (const int pause : {1200, 2400, 4800, 9600, 9600}) {
        ASSERT_EQ(see(4), Verdict::go) << pause;
        gate_.changed(eth0_, {}, false, now_);
        EXPECT_EQ(gate_.verdict(eth0_), Verdict::waits);
        wait(seconds(pause - 1));
        EXPECT_EQ(see(4), Verdict::waits) << pause;
        wait(seconds(1));
    }
    gate_.changed(eth0_, {}, false, now_);
    gate_.begin_anew();
    EXPECT_EQ(see(4), Verdict::go) << "somebody asked for it";
}

TEST_F(GateTest, WhatAnAdministratorChangesMeanwhileIsLeftAlone) {
    (void)see(4);
    wait(seconds(60));
    ASSERT_EQ(see(4), Verdict::go);
    change(4);
    wait(seconds(3600));
    ASSERT_EQ(see(4), Verdict::in_place);
    present_ = 6;
    EXPECT_EQ(see(4), Verdict::foreign);
    wait(seconds(36000));
    EXPECT_EQ(see(4), Verdict::foreign);
    EXPECT_EQ(see(3), Verdict::foreign) << "whatever is wanted by now";
    gate_.begin_anew();
    EXPECT_EQ(see(3), Verdict::settles);
    wait(seconds(60));
    EXPECT_EQ(see(3), Verdict::go);
}

TEST_F(GateTest, AlsoIfItHadWhatIsWantedAndWasNeverChangedByUs) {
    present_ = 4;
    EXPECT_EQ(see(4), Verdict::in_place);
    present_ = 8;
    EXPECT_EQ(see(4), Verdict::foreign);
    present_ = 4;
    EXPECT_EQ(see(4), Verdict::in_place) << "it may come back of itself";
}

TEST_F(GateTest, AlsoIfNoDaemonRanMeanwhile) {
    record_ = UndoRecord{queues(8), queues(4), queues(4), "p"};
    present_ = 6;
    EXPECT_EQ(see(4), Verdict::foreign);
}

TEST_F(GateTest, ADriverThatWasLoadedAnewIsNobodyElse) {
    record_ = UndoRecord{queues(8), queues(4), queues(4), "p"};
    EXPECT_EQ(see(4), Verdict::settles) << "it has its original again";
    present_ = 4;
    QueueCountGate fresh;
    gate_ = fresh;
    EXPECT_EQ(see(4), Verdict::in_place);
    const QueueCount again{"devices/a", "eth0", 9, false, 90};
    EXPECT_EQ(see(again, 8, 4), Verdict::settles) << "another interface of the device";
}

TEST_F(GateTest, WhatWasPutBackByARelease) {
    (void)see(4);
    wait(seconds(60));
    ASSERT_EQ(see(4), Verdict::go);
    change(4);
    ASSERT_EQ(see(4), Verdict::in_place);
    record_.reset();
    present_ = 8;
    EXPECT_EQ(see(4), Verdict::waits) << "is not somebody else's";
}

TEST_F(GateTest, InterfacesThatAreSeenNoMoreAreForgottenButNotWhenTheyWereChanged) {
    (void)see(4);
    wait(seconds(60));
    ASSERT_EQ(see(4), Verdict::go);
    change(4);
    gate_.end_round(terms_, now_);
    gate_.end_round(terms_, now_);
    EXPECT_EQ(see(2), Verdict::settles);
    wait(seconds(60));
    EXPECT_EQ(see(2), Verdict::waits) << "a service that was restarted resets it no sooner";
    gate_.end_round(terms_, now_);
    wait(seconds(600));
    gate_.end_round(terms_, now_);
    EXPECT_EQ(see(2), Verdict::settles);
}

TEST_F(GateTest, WhatWasRefusedRestsEverLongerWhoeverWantsIt) {
    EXPECT_FALSE(gate_.rests(eth0_, terms_, now_));
    gate_.changed(eth0_, queues(8), false, now_); // it was not seen before: a crash, and the policy is gone
    EXPECT_TRUE(gate_.rests(eth0_, terms_, now_));
    EXPECT_FALSE(gate_.rests(eth1_, terms_, now_));
    wait(seconds(1200));
    EXPECT_FALSE(gate_.rests(eth0_, terms_, now_));
    gate_.changed(eth0_, queues(8), false, now_);
    wait(seconds(1200));
    EXPECT_TRUE(gate_.rests(eth0_, terms_, now_));
    gate_.changed(eth0_, queues(8), true, now_);
    EXPECT_FALSE(gate_.rests(eth0_, terms_, now_));
}

/// A driver may reset its interface before it refuses (an XDP program was attached meanwhile, for example).
TEST(QueueCountsPutBack, AreNotAskedForWithEachPassWhereTheDriverRefuses) {
    const test::Machine machine;
    test::Instance instance(machine);
    const QueueCount eth0{"devices/pci0000:00/0000:00:03.0", "eth0", 2};
    instance.enforcer().channels["eth0"] = Channels{2, 0, 0};
    ASSERT_TRUE(instance.journal().put(
        eth0, {Channels{8, 0, 0}, Channels{2, 0, 0}, Channels{2, 0, 0}, "a policy that is gone"}));
    instance.enforcer().refuse[eth0] = enforcer::Outcome::failed;
    ASSERT_TRUE(instance.manager().start());
    for (int pass = 0; pass < 5; ++pass)
        instance.pass();
    EXPECT_EQ(std::ranges::count(instance.enforcer().done, planner::Subject(eth0)), 1);
    EXPECT_EQ(instance.log().times("could not be put back"), 1U) << instance.log().text();
    EXPECT_NE(enforcer::refusal_hint(eth0, EINVAL).find("ethtool -x"), std::string_view::npos);
    EXPECT_EQ(enforcer::refusal_hint(machine::IrqMask{}, EINVAL), "");
    EXPECT_TRUE(instance.journal().contains(eth0)) << "a later attempt may succeed";
    instance.enforcer().refuse.clear();
    instance.stop();
    EXPECT_EQ(instance.enforcer().channels["eth0"], (Channels{8, 0, 0})) << "the end is tried in any case";
}

} // namespace
} // namespace affinityd::app
