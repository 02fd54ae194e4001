// SPDX-License-Identifier: Apache-2.0
// AllowedCPUs= of a unit whose daemon is killed, or gets no answer from systemd, in the middle of a change.
#include "simulated.hpp"

#include <filesystem>
#include <map>

namespace affinityd::app {
namespace {

using test::Instance;

constexpr auto unit = "server.service";

class UnitKills : public testing::Test {
  protected:
    struct Killed {};
    enum class Systemd { obeys, kills, refuses };
    UnitKills() {
        machine_.tree().file("sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n");
        machine_.process(10, "server");
        machine_.tree().file("proc/10/cgroup", "0::/system.slice/server.service\n");
        machine_.tree().file("sys/fs/cgroup/system.slice/server.service/cgroup.procs", "10\n");
        units_[unit] = CpuSet{0, 1};
    }
    void want(const std::string& cpus, const std::string& drift = "enforce") {
        machine_.policy("server", "match: {comm: server}\nbind: set\nmeans: cpuset\ncpus: \"" + cpus +
                                      "\"\ndrift: " + drift + "\n");
    }
    void begin_anew() {
        units_[unit] = CpuSet{0, 1};
        for (const auto* file : {"undo.journal", "undo.journal.granted"})
            std::filesystem::remove(machine_.path(file));
    }
    void want_nothing() { machine_.policy("server", "match: {comm: unrelated}\n"); }
    /// Two passes of a daemon that then is killed, or (`ends`) stopped.
    void run(Systemd systemd = Systemd::obeys, bool ends = false) {
        Instance daemon(machine_);
        daemon.systemd().units = units_;
        if (systemd == Systemd::kills) daemon.systemd().on_write = [](const std::string&) { throw Killed(); };
        if (systemd == Systemd::refuses) daemon.systemd().refusal = EINVAL;
        ASSERT_TRUE(daemon.manager().start());
        try {
            daemon.pass();
            daemon.pass();
        } catch (const Killed&) {
        }
        daemon.systemd().refusal = 0;
        if (ends) daemon.stop();
        units_ = daemon.systemd().units;
    }
    [[nodiscard]] std::string cpus() { return units_[unit].to_list(); }

    std::map<std::string, CpuSet> units_;
    test::Machine machine_;
};

TEST_F(UnitKills, OnceOrTwiceLeaveTheOriginalToTheNextDaemon) {
    want("2-3");
    run();
    ASSERT_EQ(cpus(), "2-3");
    for (const auto* next : {"3", "2"}) {
        want(next);
        run(Systemd::kills);
        ASSERT_EQ(cpus(), "2-3");
    }
    want_nothing();
    run();
    EXPECT_EQ(cpus(), "0-1");
}

TEST_F(UnitKills, AndARefusalThenLeaveTheOriginal) {
    want("2-3");
    run();
    want("3");
    run(Systemd::kills);
    want("2");
    run(Systemd::refuses, true);
    EXPECT_EQ(cpus(), "0-1");
}

TEST_F(UnitKills, AfterARefusalWhatWasRefusedIsSomebodyElsesIfItIsSet) {
    want("2-3");
    run();
    want("3");
    run(Systemd::refuses);
    ASSERT_EQ(cpus(), "2-3");
    units_[unit] = CpuSet{3};
    want_nothing();
    run();
    EXPECT_EQ(cpus(), "3");
}

TEST_F(UnitKills, WithoutAnAnswerAnyNumberOfTimesTheOriginalIsPutBack) {
    for (int silent = 0; silent < 4; ++silent) {
        std::filesystem::remove(machine_.path("undo.journal"));
        std::filesystem::remove(machine_.path("undo.journal.granted"));
        Instance daemon(machine_);
        daemon.systemd().units[unit] = CpuSet{0, 1};
        want("2-3");
        ASSERT_TRUE(daemon.manager().start());
        daemon.pass();
        ASSERT_EQ(daemon.systemd().units[unit].to_list(), "2-3");
        want("3");
        ASSERT_TRUE(daemon.reload());
        daemon.systemd().refusal = ETIMEDOUT;
        for (int i = 0; i < silent; ++i)
            daemon.pass();
        daemon.systemd().refusal = 0;
        daemon.stop();
        EXPECT_EQ(daemon.systemd().units[unit].to_list(), "0-1") << silent;
    }
}

TEST_F(UnitKills, BeforeTheFirstChangeAreNobodysDoing) {
    for (const std::string drift : {"once", "yield", "enforce"}) {
        begin_anew();
        want("2-3", drift);
        run(Systemd::kills);
        run(Systemd::kills);
        ASSERT_EQ(cpus(), "0-1");
        run();
        EXPECT_EQ(cpus(), "2-3") << drift;
        run(Systemd::obeys, true);
        EXPECT_EQ(cpus(), "0-1") << drift;
    }
}

TEST_F(UnitKills, BeforeTheFirstChangeAndARefusalThenLeaveNothing) {
    want("3");
    run(Systemd::kills);
    run(Systemd::refuses);
    units_[unit] = CpuSet{3}; // an administrator
    want_nothing();
    run();
    EXPECT_EQ(cpus(), "3");
}

TEST_F(UnitKills, AndARefusalThenLeaveWhatWasNeverSetToOthers) {
    want("2-3");
    run();
    want("3");
    run(Systemd::kills);
    want("2");
    run(Systemd::refuses);
    units_[unit] = CpuSet{3}; // an administrator
    want_nothing();
    run();
    EXPECT_EQ(cpus(), "3");
}

TEST_F(UnitKills, AfterAChangeAndARefusalThenLeaveTheFormerCpusToOthers) {
    want("2-3");
    run();
    want("3");
    run(Systemd::kills);
    units_[unit] = CpuSet{3}; // it had been done
    want("2");
    run(Systemd::refuses);
    units_[unit] = CpuSet{2, 3}; // an administrator
    want_nothing();
    run();
    EXPECT_EQ(cpus(), "2-3");
}

TEST_F(UnitKills, WithoutAnAnswerLeaveTheFormerCpusToOthersOnceTheChangeIsSeen) {
    for (const std::string drift : {"once", "enforce"}) {
        begin_anew();
        want("2-3", drift);
        Instance daemon(machine_);
        daemon.systemd().units[unit] = CpuSet{0, 1};
        ASSERT_TRUE(daemon.manager().start());
        daemon.pass();
        ASSERT_EQ(daemon.systemd().units[unit].to_list(), "2-3");
        want("3", drift);
        ASSERT_TRUE(daemon.reload());
        daemon.systemd().refusal = ETIMEDOUT;
        daemon.pass();
        daemon.systemd().refusal = 0;
        daemon.systemd().units[unit] = CpuSet{3}; // done nevertheless
        daemon.pass();
        EXPECT_FALSE(daemon.journal().find(machine::UnitCpuset{unit})->before);
        daemon.systemd().units[unit] = CpuSet{2, 3}; // systemctl set-property
        if (drift == "once") daemon.pass();
        EXPECT_EQ(daemon.systemd().units[unit].to_list(), "2-3") << drift;
        daemon.stop();
        EXPECT_EQ(daemon.systemd().units[unit].to_list(), "2-3") << drift;
    }
}

} // namespace
} // namespace affinityd::app
