// SPDX-License-Identifier: Apache-2.0
// The way of systemd units, over control groups out of files and a systemd that answers at once, later, or
// never.
#include "app/fence_plan.hpp"
#include "app/unit_place.hpp"
#include "app/units.hpp"
#include "policy/reader.hpp"
#include "readable_log.hpp"
#include "simulated_systemd.hpp"
#include "support/tree.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace affinityd::app {
namespace {

const CpuSet lower = *CpuSet::parse_list("0-1");
const CpuSet upper = *CpuSet::parse_list("2-3");
const machine::UnitCpuset server_unit{"server.service"};

class UnitFences : public testing::Test {
  protected:
    UnitFences() {
        tree_.file("proc/version", "");
        tree_.file("sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n");
        procs("system.slice/server.service", "10\n11\n");
        root_ = std::make_unique<host::Root>(std::move(*host::Root::open(tree_.path())));
        journal_ = std::make_unique<state::Journal>(std::move(*state::Journal::open(tree_.path("undo"))));
        policies({policy("server")});
        begin();
    }

    static std::string policy(const std::string& name, const std::string& more = {}) {
        return name + "\n" + "version: 1\nmatch: {comm: " + name + "}\ncpus: \"2-3\"\nmeans: cpuset\n" + more;
    }
    /// Each text begins with a line that has the policy's name.
    void policies(const std::vector<std::string>& texts) {
        std::vector<policy::Document> documents;
        for (const auto& text : texts) {
            const auto end = text.find('\n');
            documents.push_back({text.substr(0, end) + ".yaml", text.substr(end + 1)});
        }
        auto read = policy::read_policies(documents);
        for (const auto& diagnostic : read.diagnostics)
            if (diagnostic.severity == policy::Severity::error)
                ADD_FAILURE() << policy::to_string(diagnostic, true);
        machine::Machine machine;
        auto& topology = machine.topology;
        topology.possible = topology.present = topology.online = topology.housekeeping = CpuSet::range(0, 3);
        for (unsigned cpu = 0; cpu < 4; ++cpu) {
            topology.cpus.push_back({cpu, 0, {}, {}, static_cast<int>(cpu), 0, {}, CpuSet::range(cpu, cpu)});
            topology.cores.push_back(CpuSet::range(cpu, cpu));
        }
        current_.world = std::make_shared<World>(std::move(read.set), std::move(machine));
    }
    /// A daemon starts.
    void begin() {
        units_.reset();
        units_ = std::make_unique<Units>(Units::Parts{*root_, current_, *journal_, systemd_, releases_,
                                                      [this] { ++fences_changed_; }, log_.log()});
    }
    void procs(const std::string& folder, const std::string& pids) const {
        tree_.file("sys/fs/cgroup/" + folder + "/cgroup.procs", pids);
    }
    void observe(int pid, const std::string& policy = "server",
                 const std::string& cgroup = "/system.slice/server.service") {
        const auto& all = current_->policies().policies;
        const auto at = std::ranges::find(all, policy, &policy::Policy::name);
        ASSERT_NE(at, all.end());
        units_->observe({pid, 1}, cgroup, static_cast<std::size_t>(at - all.begin()));
    }
    void observe_server() {
        observe(10);
        observe(11);
    }
    void step() {
        for (int turn = 0; turn < 1000 && !units_->step([] { return false; }); ++turn) {
        }
    }
    void pass() {
        units_->begin_pass();
        step();
    }
    [[nodiscard]] std::string state(const std::string& unit = "server.service") const {
        const auto units = units_->status();
        const auto found = std::ranges::find(units, unit, &status::UnitStatus::unit);
        return found == units.end() ? "" : found->state;
    }
    [[nodiscard]] std::string problem() const {
        const auto problems = units_->problems();
        return problems.empty() ? "" : problems[0].message;
    }
    [[nodiscard]] bool is_logged(const std::string& text) const {
        return log_.text().find(text) != std::string::npos;
    }

    affinityd::test::Tree tree_;
    test::ReadableLog log_;
    std::unique_ptr<host::Root> root_;
    std::unique_ptr<state::Journal> journal_;
    Current current_;
    Releases releases_;
    test::SimulatedSystemd systemd_;
    unsigned fences_changed_ = 0;
    std::unique_ptr<Units> units_;
};

TEST_F(UnitFences, AreSetOnceAndRestoredWhenTheProcessesLeave) {
    bool was_written_down = false;
    systemd_.on_write = [&](const auto&) { was_written_down = journal_->contains(server_unit); };
    observe_server();
    pass();
    EXPECT_EQ(systemd_.units["server.service"], upper);
    EXPECT_TRUE(was_written_down) << "before the change";
    EXPECT_EQ(journal_->find(server_unit)->granted, machine::Setting(upper));
    EXPECT_EQ(state(), "in place");
    EXPECT_EQ(problem(), "");
    EXPECT_EQ(fences_changed_, 1U);
    pass();
    EXPECT_EQ(systemd_.writes, 1U) << "a second pass changes nothing";
    units_->forget({10, 1});
    units_->forget({11, 2});
    procs("system.slice/server.service", "11\n");
    pass();
    EXPECT_EQ(state(), "in place") << "another process of that number has ended";
    units_->forget({11, 1});
    step();
    EXPECT_TRUE(systemd_.units["server.service"].empty());
    EXPECT_FALSE(journal_->contains(server_unit));
    EXPECT_EQ(state(), "");
}

TEST_F(UnitFences, AnAdministratorsSettingComesBackEvenAfterACrash) {
    systemd_.units["server.service"] = *CpuSet::parse_list("1-3");
    observe_server();
    pass();
    begin();
    observe_server();
    pass();
    units_->begin_stop();
    EXPECT_EQ(systemd_.units["server.service"].to_list(), "1-3");
    EXPECT_FALSE(units_->is_busy());
}

TEST_F(UnitFences, OfAnEarlierDaemonAreNotTouchedUntilAPassHasNamedAllProcesses) {
    observe_server();
    pass();
    begin();
    observe(10);
    step();
    EXPECT_EQ(systemd_.units["server.service"], upper);
    observe(11);
    pass();
    EXPECT_EQ(state(), "in place");
    EXPECT_EQ(systemd_.writes, 1U);
}

TEST_F(UnitFences, ThatNoPolicyWantsAnyMoreAreRestoredAfterACrash) {
    observe_server();
    pass();
    begin();
    pass();
    EXPECT_TRUE(systemd_.units["server.service"].empty());
    EXPECT_FALSE(journal_->contains(server_unit));
}

TEST_F(UnitFences, AForeignProcessKeepsAUnitOpen) {
    procs("system.slice/server.service", "10\n11\n20\n");
    observe_server();
    pass();
    EXPECT_EQ(systemd_.writes, 0U);
    EXPECT_EQ(problem(), "process 20 of it is not under the policy: affinity alone is used");
    procs("system.slice/server.service", "10\n11\n");
    pass();
    EXPECT_EQ(systemd_.units["server.service"], upper);
    procs("system.slice/server.service/below", "20\n");
    pass();
    EXPECT_TRUE(systemd_.units["server.service"].empty())
        << "a foreign process in a group below takes it away";
}

TEST_F(UnitFences, AProcessForkedAMomentAgoIsNoForeignOne) {
    procs("system.slice/server.service", "10\n11\n12\n");
    observe_server();
    units_->begin_pass();
    EXPECT_FALSE(units_->step([] { return false; })) << "it looks twice";
    observe(12);
    step();
    EXPECT_EQ(systemd_.units["server.service"], upper);
}

TEST_F(UnitFences, ProcessesThatChangeFasterThanTheyAreReadLeaveTheFenceAsItIs) {
    observe_server();
    pass();
    units_->begin_pass();
    for (int pid = 100; pid < 110; ++pid) {
        procs("system.slice/server.service", "10\n11\n" + std::to_string(pid) + "\n");
        units_->step([] { return false; });
    }
    EXPECT_EQ(systemd_.units["server.service"], upper);
    EXPECT_NE(state(), "in place");
}

TEST_F(UnitFences, AControlGroupThatCannotBeReadLeavesTheFenceAsItIs) {
    observe_server();
    pass();
    const auto file = tree_.path("sys/fs/cgroup/system.slice/server.service/cgroup.procs");
    std::filesystem::remove(file);
    std::filesystem::create_directories(file);
    pass();
    EXPECT_EQ(systemd_.units["server.service"], upper);
    EXPECT_EQ(state(), "its processes cannot be read, or change too fast");
}

TEST_F(UnitFences, TwoPoliciesForOneUnitMeanNone) {
    policies({policy("server"), policy("other")});
    observe_server();
    pass();
    ASSERT_EQ(state(), "in place");
    procs("system.slice/server.service", "10\n11\n12\n");
    observe(12, "other");
    step();
    EXPECT_EQ(state(), "claimed by another policy too");
    EXPECT_TRUE(systemd_.units["server.service"].empty());
    units_->forget({12, 1});
    procs("system.slice/server.service", "10\n11\n");
    step();
    EXPECT_EQ(systemd_.units["server.service"], upper);
}

TEST_F(UnitFences, ANewUnitGetsItsFenceByEventAlone) {
    pass();
    procs("system.slice/late.service", "30\n");
    observe(30, "server", "/system.slice/late.service");
    step();
    EXPECT_EQ(systemd_.units["late.service"], upper);
}

TEST_F(UnitFences, ProcessesThatCannotHaveOneAreShownAsProblems) {
    observe(10, "server", "/user.slice/user-1.slice/user@1.service/app.slice/server.service");
    pass();
    EXPECT_EQ(problem(), "it is in no unit of the system: affinity alone is used");
    observe(10, "server", "/system.slice/server.service");
    observe(11);
    std::filesystem::remove(tree_.path("sys/fs/cgroup/cgroup.controllers"));
    pass();
    EXPECT_EQ(problem(), "cpusets of units need the unified cgroup hierarchy: affinity alone is used");
    EXPECT_EQ(systemd_.writes, 0U);
}

TEST_F(UnitFences, DriftIsTreatedAsThePolicySays) {
    for (const auto& [drift, expected] :
         std::map<std::string, std::string>{{"enforce", "2-3"}, {"yield", "0-1"}, {"once", "0-1"}}) {
        policies({policy("server", "drift: " + drift + "\n")});
        begin();
        systemd_.units["server.service"] = {};
        observe_server();
        pass();
        systemd_.units["server.service"] = lower;
        pass();
        EXPECT_EQ(systemd_.units["server.service"].to_list(), expected) << drift;
        units_->begin_stop();
        EXPECT_EQ(systemd_.units["server.service"].to_list(), drift == "enforce" ? "" : "0-1")
            << drift << ": only what is ours is put back";
        EXPECT_FALSE(journal_->contains(server_unit));
    }
}

TEST_F(UnitFences, AReleaseAndTheEndOfAPolicyTakeTheFenceAway) {
    observe_server();
    pass();
    releases_.release_policy("server");
    pass();
    EXPECT_TRUE(systemd_.units["server.service"].empty());
    releases_.clear();
    pass();
    ASSERT_EQ(systemd_.units["server.service"], upper);
    policies({policy("unrelated")});
    pass();
    EXPECT_TRUE(systemd_.units["server.service"].empty());
    EXPECT_FALSE(journal_->contains(server_unit));
}

TEST_F(UnitFences, OfAPolicyThatKeepsStayWhenItIsRemovedAndAtTheEnd) {
    policies({policy("server", "on_stop: keep\n")});
    observe_server();
    pass();
    policies({policy("unrelated")});
    pass();
    EXPECT_EQ(systemd_.units["server.service"], upper);
    EXPECT_FALSE(journal_->contains(server_unit));
    policies({policy("server", "on_stop: keep\n")});
    begin();
    systemd_.units["server.service"] = {};
    observe_server();
    pass();
    units_->begin_stop();
    EXPECT_EQ(systemd_.units["server.service"], upper);
    EXPECT_FALSE(journal_->contains(server_unit));
}

TEST_F(UnitFences, ASlowSystemdHoldsUpNothingAndIsAskedOnce) {
    systemd_.is_slow = true;
    observe_server();
    procs("system.slice/other.service", "30\n");
    observe(30, "server", "/system.slice/other.service");
    pass();
    EXPECT_EQ(systemd_.reads, 2U) << "both at once";
    EXPECT_TRUE(units_->is_busy());
    EXPECT_EQ(state(), "not yet");
    pass();
    pass();
    EXPECT_EQ(systemd_.reads, 2U) << "no second call while the first waits";
    systemd_.answer();
    step();
    systemd_.answer();
    EXPECT_FALSE(units_->is_busy());
    EXPECT_EQ(systemd_.units["server.service"], upper);
    EXPECT_EQ(systemd_.units["other.service"], upper);
}

TEST_F(UnitFences, ASilentSystemdIsShownAndAskedAgainWithTheNextPass) {
    systemd_.is_slow = true;
    observe_server();
    pass();
    systemd_.answer(ETIMEDOUT);
    EXPECT_EQ(problem(), "systemd does not answer for it: affinity alone is used");
    EXPECT_FALSE(units_->is_busy());
    systemd_.is_slow = false;
    pass();
    EXPECT_EQ(state(), "in place");
}

TEST_F(UnitFences, AWriteWithoutAnAnswerKeepsItsRecordAndIsMadeAgain) {
    policies({policy("server", "drift: yield\n")});
    systemd_.is_slow = true;
    observe_server();
    pass();
    auto first = std::move(systemd_.kept.front());
    systemd_.kept.pop_front();
    first(0);
    ASSERT_EQ(systemd_.writes, 1U);
    systemd_.answer(ETIMEDOUT);
    EXPECT_TRUE(journal_->contains(server_unit)) << "it may be set";
    systemd_.is_slow = false;
    pass();
    EXPECT_EQ(systemd_.units["server.service"], upper) << "nobody else has changed it";
    units_->begin_stop();
    EXPECT_TRUE(systemd_.units["server.service"].empty());
}

TEST_F(UnitFences, ARefusalIsNamedAndLeavesNoRecord) {
    systemd_.refusal = EACCES;
    observe_server();
    pass();
    EXPECT_EQ(state(), "systemd refuses: Permission denied");
    EXPECT_FALSE(journal_->contains(server_unit));
    systemd_.refusal = 0;
    pass();
    ASSERT_EQ(state(), "in place");
    systemd_.refusal = EACCES;
    systemd_.units["server.service"] = lower;
    pass();
    EXPECT_TRUE(journal_->contains(server_unit)) << "the earlier change still has its record";
    EXPECT_EQ(journal_->find(server_unit)->original, machine::Setting(CpuSet{}));
}

TEST_F(UnitFences, TheEndWaitsForACallThatIsUnderWayAndRestores) {
    systemd_.is_slow = true;
    observe_server();
    pass();
    auto first = std::move(systemd_.kept.front());
    systemd_.kept.pop_front();
    first(0); // the write is under way now
    units_->begin_stop();
    EXPECT_TRUE(units_->is_busy());
    systemd_.answer();
    EXPECT_FALSE(units_->is_busy());
    EXPECT_TRUE(systemd_.units["server.service"].empty());
    EXPECT_FALSE(journal_->contains(server_unit));
}

TEST_F(UnitFences, WithoutAnAnswerAtTheEndAreLeftToALaterDaemon) {
    observe_server();
    pass();
    systemd_.is_slow = true;
    units_->begin_stop();
    EXPECT_TRUE(units_->is_busy());
    systemd_.answer(ETIMEDOUT);
    EXPECT_FALSE(units_->is_busy()) << "a bounded wait";
    EXPECT_TRUE(is_logged("could not be put back: systemd does not answer"));
    ASSERT_TRUE(journal_->contains(server_unit));
    systemd_.is_slow = false;
    begin();
    units_->begin_stop();
    EXPECT_TRUE(systemd_.units["server.service"].empty());
}

TEST_F(UnitFences, ARestoreAnswersWithTheirNumberWhenItIsOver) {
    observe_server();
    pass();
    systemd_.is_slow = true;
    std::optional<std::size_t> restored;
    units_->restore([](const auto&) { return Restorer::Choice::restore; },
                    [&](std::size_t count) { restored = count; });
    EXPECT_FALSE(restored);
    systemd_.answer();
    EXPECT_EQ(restored, 1U);
    units_->restore([](const auto&) { return Restorer::Choice::restore; },
                    [&](std::size_t count) { restored = count; });
    EXPECT_EQ(restored, 0U) << "at once where there is nothing to restore";
}

TEST_F(UnitFences, AnAnswerAfterTheEndIsDropped) {
    systemd_.is_slow = true;
    observe_server();
    pass();
    units_.reset();
    systemd_.answer();
    EXPECT_EQ(systemd_.writes, 0U);
}

TEST_F(UnitFences, ManyProcessesAreReadInManySlices) {
    std::string pids;
    for (int pid = 1000; pid < 21000; ++pid) {
        pids += std::to_string(pid) + "\n";
        observe(pid);
    }
    procs("system.slice/server.service", pids);
    units_->begin_pass();
    unsigned slices = 1;
    while (!units_->step([] { return true; }))
        ++slices;
    EXPECT_GT(slices, 20U);
    EXPECT_EQ(systemd_.units["server.service"], upper);
}

TEST_F(UnitFences, ADryRunAsksAndChangesNothing) {
    units_ = std::make_unique<Units>(
        Units::Parts{*root_, current_, *journal_, systemd_, releases_, [] {}, log_.log(), false});
    observe_server();
    pass();
    EXPECT_EQ(systemd_.reads, 0U);
    EXPECT_EQ(state(), "");
}

TEST_F(UnitFences, AreExplainedByProcess) {
    observe_server();
    status::ProcessExplanation before;
    units_->explain({10, 1}, before);
    EXPECT_EQ(before.fence_state, "not yet");
    pass();
    status::ProcessExplanation after;
    units_->explain({10, 1}, after);
    EXPECT_EQ(after.fenced_unit, "server.service");
    EXPECT_EQ(after.fence_state, "in place");
    status::ProcessExplanation other;
    units_->explain({10, 2}, other);
    EXPECT_EQ(other.fenced_unit, "") << "another process of the same number";
}

TEST(UnitPlaces, AreThoseThatSystemdCouldFence) {
    const auto nginx = find_unit("/system.slice/nginx.service/workers");
    ASSERT_TRUE(nginx);
    EXPECT_EQ(*nginx, (UnitPlace{"nginx.service", "/system.slice/nginx.service"}));
    ASSERT_TRUE(find_unit("/machine.slice/libpod-1.scope"));
    for (const char* cgroup :
         {"/", "", "/init.scope", "/system.slice", "/user.slice/user-1.slice/user@1.service",
          "/user.slice/user-1.slice/user@1.service/app.slice/a.service", "nonsense"})
        EXPECT_FALSE(find_unit(cgroup)) << cgroup;
}

TEST_F(UnitFences, AFirstFenceThatSystemdWasAskedAboutIsNotSetOnceTheDaemonEnds) {
    systemd_.is_slow = true;
    observe_server();
    pass();
    ASSERT_EQ(systemd_.reads, 1U);
    units_->begin_stop();
    systemd_.answer();
    EXPECT_FALSE(units_->is_busy());
    EXPECT_EQ(systemd_.units["server.service"], CpuSet{});
    EXPECT_FALSE(journal_->contains(server_unit));
}

} // namespace
} // namespace affinityd::app
