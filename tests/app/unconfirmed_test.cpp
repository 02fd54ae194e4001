// SPDX-License-Identifier: Apache-2.0
// Changes of which a killed daemon has not written down whether it made them: the first look tells.
#include "simulated.hpp"

#include <algorithm>
#include <filesystem>

namespace affinityd::app {
namespace {

using machine::TaskMask;
using test::Instance;

const TaskMask server{{10, 100}, 10, "server"};

class Unconfirmed : public testing::Test {
  protected:
    struct Killed {};
    static void start(Instance& daemon) {
        ASSERT_TRUE(daemon.manager().start());
        daemon.pass();
    }
    void want(const std::string& cpus, const std::string& drift = "enforce") const {
        machine_.policy("server",
                        "match: {comm: server}\nbind: set\ncpus: \"" + cpus + "\"\ndrift: " + drift + "\n");
    }
    void want_nothing() const { machine_.policy("server", "match: {comm: unrelated}\n"); }
    void want_irq(const std::string& cpus) const {
        machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"" + cpus + "\"\n");
    }
    /// A daemon that is killed between the journal's line and the first change.
    void kill_before_the_change() {
        Instance daemon(machine_);
        ASSERT_TRUE(daemon.manager().start());
        daemon.enforcer().before_apply = [] { throw Killed(); };
        EXPECT_THROW(daemon.pass(), Killed);
    }
    /// A daemon that is killed between the change and the journal's second line.
    void kill_after_the_change(const std::string& cpus) {
        kill_before_the_change();
        machine_.process(10, "server", cpus);
    }
    void begin_anew() {
        machine_.end(10);
        machine_.process(10, "server", "0-1");
        for (const auto* file : {"undo.journal", "undo.journal.granted"})
            std::filesystem::remove(machine_.path(file));
    }
    test::Machine machine_;
};

TEST_F(Unconfirmed, FirstChangesThatWereNotMadeAreNobodysDoing) {
    for (const std::string drift : {"once", "yield", "enforce"}) {
        begin_anew();
        want("2", drift);
        for (int kill = 0; kill < 2; ++kill)
            kill_before_the_change();
        ASSERT_EQ(machine_.allowed(10, 10), "0-1");
        Instance next(machine_);
        start(next);
        EXPECT_EQ(machine_.allowed(10, 10), "2") << drift;
        next.stop();
        EXPECT_EQ(machine_.allowed(10, 10), "0-1") << drift;
        EXPECT_EQ(next.journal().size(), 0U);
    }
}

TEST_F(Unconfirmed, FirstChangesToOneCpuAndThenToAnotherKeepTheOriginal) {
    begin_anew();
    want("2", "once");
    kill_before_the_change();
    want("3", "once");
    kill_before_the_change();
    ASSERT_EQ(machine_.allowed(10, 10), "0-1");
    want("2", "once");
    Instance next(machine_);
    start(next);
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    next.stop();
    EXPECT_EQ(machine_.allowed(10, 10), "0-1");
}

TEST_F(Unconfirmed, FirstChangesThatNoPolicyWantsAnyMoreLeaveNothing) {
    begin_anew();
    want("2");
    kill_before_the_change();
    want_nothing();
    Instance next(machine_);
    start(next);
    EXPECT_EQ(machine_.allowed(10, 10), "0-1");
    EXPECT_EQ(next.journal().size(), 0U);
}

TEST_F(Unconfirmed, FirstChangesThatAreThenRefusedLeaveNothing) {
    for (const std::string drift : {"once", "enforce"}) {
        begin_anew();
        want("2", drift);
        kill_before_the_change();
        Instance next(machine_);
        next.enforcer().refuse[server] = enforcer::Outcome::busy;
        start(next);
        ASSERT_EQ(machine_.allowed(10, 10), "0-1");
        EXPECT_EQ(next.journal().size(), 0U) << drift;
        machine_.process(10, "server", "2"); // an administrator
        next.stop();
        EXPECT_EQ(machine_.allowed(10, 10), "2") << drift;
    }
}

TEST_F(Unconfirmed, FirstChangesThatWereMadeLeaveTheOriginalToOthers) {
    for (const std::string drift : {"once", "enforce"}) {
        begin_anew();
        want("2", drift);
        kill_after_the_change("2");
        Instance next(machine_);
        start(next);
        ASSERT_EQ(machine_.allowed(10, 10), "2");
        EXPECT_FALSE(next.journal().find(server)->before);
        machine_.process(10, "server", "0-1"); // an administrator
        next.pass();
        EXPECT_EQ(machine_.allowed(10, 10), drift == "once" ? "0-1" : "2");
    }
}

TEST_F(Unconfirmed, FurtherChangesThatWereMadeLeaveTheFormerMaskToOthers) {
    for (const std::string drift : {"once", "enforce"}) {
        begin_anew();
        want("2", drift);
        {
            Instance daemon(machine_);
            start(daemon);
            ASSERT_EQ(machine_.allowed(10, 10), "2");
        }
        want("3", drift);
        kill_after_the_change("3");
        Instance next(machine_);
        start(next);
        ASSERT_EQ(machine_.allowed(10, 10), "3");
        EXPECT_FALSE(next.journal().find(server)->before);
        machine_.process(10, "server", "2"); // an administrator
        if (drift == "once") next.pass();
        EXPECT_EQ(machine_.allowed(10, 10), "2") << drift;
        next.stop();
        EXPECT_EQ(machine_.allowed(10, 10), "2") << drift;
    }
}

TEST_F(Unconfirmed, ChangesThatWereNotMadeAndAreNotWantedAnyMoreAreNotOurs) {
    begin_anew();
    want("2");
    {
        Instance daemon(machine_);
        start(daemon);
    }
    want("3");
    kill_before_the_change();
    want("2");
    Instance next(machine_);
    start(next);
    ASSERT_EQ(machine_.allowed(10, 10), "2");
    machine_.process(10, "server", "3"); // an administrator
    next.stop();
    EXPECT_EQ(machine_.allowed(10, 10), "3");
}

TEST_F(Unconfirmed, ChangesToWhoWasSetBySomebodyElseMeanwhileAreOver) {
    begin_anew();
    want("2", "once");
    kill_before_the_change();
    machine_.process(10, "server", "3"); // an administrator
    Instance next(machine_);
    start(next);
    ASSERT_EQ(machine_.allowed(10, 10), "3");
    EXPECT_FALSE(next.journal().find(server)->before);
    machine_.process(10, "server", "0-1");
    next.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "0-1") << "the administrator's, too";
}

TEST_F(Unconfirmed, ChangesOfInterruptsThatWereMadeLeaveTheFormerMaskToOthers) {
    machine_.set_irq(31, "1-2");
    want_irq("0,2");
    {
        Instance daemon(machine_);
        start(daemon);
        ASSERT_EQ(machine_.irq(31), "2");
    }
    want_irq("0,3");
    kill_before_the_change();
    ASSERT_EQ(machine_.irq(31), "2");
    const auto records = state::Journal::open(machine_.path("undo.journal"))->queues();
    ASSERT_TRUE(std::ranges::any_of(records, [](const auto& entry) {
        const auto* irq = std::get_if<machine::IrqMask>(&entry.subject);
        return irq != nullptr && irq->irq == 31 && entry.record.asked == machine::Setting(CpuSet{3});
    }));
    machine_.set_irq(31, "3"); // the daemon, after all
    Instance next(machine_);
    start(next);
    ASSERT_EQ(machine_.irq(31), "3");
    machine_.set_irq(31, "2"); // an administrator
    next.stop();
    EXPECT_EQ(machine_.irq(31), "2");
}

TEST_F(Unconfirmed, FirstChangesOfInterruptsThatWereNotMadeLeaveNothing) {
    machine_.set_irq(31, "1-2");
    want_irq("0,3");
    kill_before_the_change();
    for (const bool is_wanted : {true, false}) {
        if (!is_wanted) machine_.policy("nic", "match: {comm: unrelated}\n");
        Instance next(machine_);
        start(next);
        EXPECT_EQ(machine_.irq(31), is_wanted ? "3" : "1-2");
        next.stop();
        EXPECT_EQ(machine_.irq(31), "1-2") << is_wanted;
        EXPECT_EQ(next.journal().size(), 0U);
    }
}

TEST_F(Unconfirmed, NothingIsWrittenOfWhatIsInPlace) {
    begin_anew();
    want("2");
    want_irq("0,3");
    Instance daemon(machine_);
    start(daemon);
    machine_.process(20, "server", "2", 10, 0, 300); // inherited
    daemon.pass();
    ASSERT_TRUE(daemon.journal().contains(TaskMask{{20, 300}, 20, "server"}));
    const auto size = std::filesystem::file_size(machine_.path("undo.journal"));
    for (int pass = 0; pass < 3; ++pass)
        daemon.pass();
    EXPECT_EQ(std::filesystem::file_size(machine_.path("undo.journal")), size);
}

TEST_F(Unconfirmed, WhatTheKernelHasWidenedBeforeAChangeThatIsNotMadeIsOurs) {
    const auto online = [&](const char* cpus) {
        machine_.tree().file("sys/devices/system/cpu/online", std::string(cpus) + "\n");
    };
    for (const bool is_task : {true, false}) {
        const auto wish = [&](const std::string& cpus) { is_task ? want(cpus) : want_irq(cpus); };
        const auto set = [&](const std::string& cpus) {
            if (is_task) machine_.process(10, "server", cpus);
            for (const unsigned irq : {30U, 31U})
                if (!is_task) machine_.set_irq(irq, cpus);
        };
        want_nothing();
        set("1-2");
        wish("3");
        {
            Instance daemon(machine_);
            start(daemon);
        }
        online("0-2");
        set("0-3");
        wish("1");
        kill_before_the_change();
        online("0-3");
        want_nothing();
        std::filesystem::remove(machine_.path("policies/nic.yaml"));
        Instance next(machine_);
        start(next);
        EXPECT_EQ(is_task ? machine_.allowed(10, 10) : machine_.irq(30), "1-2") << is_task;
    }
}

} // namespace
} // namespace affinityd::app
