// SPDX-License-Identifier: Apache-2.0
// means: cpuset and memory: follow, over a machine out of files.
#include "simulated.hpp"
#include "support/no_descriptors_left.hpp"

namespace affinityd::app {
namespace {

using nlohmann::json;
using test::Instance;

const CpuSet upper_half = *CpuSet::parse_list("2-3");

class Units : public testing::Test {
  protected:
    Units() {
        machine_.policy("server", "match: {comm: server}\ncpus: \"2-3\"\nbind: set\nmeans: cpuset\n");
        machine_.tree().file("sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n");
        put(10, "server", "/system.slice/server.service");
        procs("system.slice/server.service", "10\n");
    }
    void put(int pid, const std::string& comm, const std::string& cgroup) const {
        machine_.process(pid, comm);
        machine_.tree().file("proc/" + std::to_string(pid) + "/cgroup", "0::" + cgroup + "\n");
    }
    void procs(const std::string& folder, const std::string& pids) const {
        machine_.tree().file("sys/fs/cgroup/" + folder + "/cgroup.procs", pids);
    }
    static std::string problem(const json& status) {
        return status["problems"].empty() ? "" : status["problems"][0]["message"].get<std::string>();
    }
    test::Machine machine_;
};

TEST_F(Units, OfOnePolicyAreFencedUntilItIsReleased) {
    Instance instance(machine_);
    instance.systemd().units["server.service"] = {};
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_EQ(instance.systemd().units["server.service"], upper_half);
    EXPECT_EQ(machine_.allowed(10, 10), "2-3");
    EXPECT_EQ(
        instance.status()["units"],
        json::parse(
            R"([{"unit": "server.service", "policy": "server", "wanted": "2-3", "state": "in place"}])"));
    EXPECT_EQ(instance.explain("10")["means"],
              json::parse(R"({"cpuset_of": "server.service", "state": "in place"})"));
    const auto applied = instance.enforcer().applied;
    instance.pass();
    EXPECT_EQ(instance.enforcer().applied, applied) << "a second pass changes nothing";
    ASSERT_TRUE(instance.release("server"));
    instance.finish();
    EXPECT_TRUE(instance.systemd().units["server.service"].empty());
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    instance.apply();
    instance.finish();
    EXPECT_EQ(instance.systemd().units["server.service"], upper_half);
    instance.stop();
    EXPECT_TRUE(instance.systemd().units["server.service"].empty());
}

TEST_F(Units, WhoAppliesIsAnsweredWhenSystemdHasAnswered) {
    Instance instance(machine_);
    instance.systemd().units["server.service"] = {};
    instance.systemd().is_slow = true;
    ASSERT_TRUE(instance.manager().start());
    std::string message;
    const auto apply = [&] {
        instance.manager().apply(
            [&](const auto& answer) { message = json::parse(answer.value_or("{}")).value("message", ""); },
            Until::done);
        instance.finish();
    };
    apply();
    EXPECT_EQ(message, "") << "the pass is over, and systemd has not answered";
    instance.systemd().answer();
    EXPECT_EQ(message, "server: 1 thread, 1 unit placed");
    message.clear();
    apply();
    EXPECT_EQ(message, "");
    instance.pass();
    EXPECT_EQ(message.find("everything was in place already: 1 thread\nsystemd has not answered"), 0U)
        << message;
    instance.systemd().answer();
    instance.systemd().is_slow = false;
    apply();
    EXPECT_EQ(message, "everything was in place already: 1 thread, 1 unit");
    const auto released = json::parse(instance.release("server").value_or("{}")).value("message", "");
    EXPECT_EQ(released, "server: 1 thread put back\nsystemd is asked to put 1 unit back");
}

TEST_F(Units, StayFencedWhileTheControlGroupOfAProcessCannotBeRead) {
    Instance instance(machine_);
    instance.systemd().units["server.service"] = {};
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    ASSERT_EQ(instance.systemd().units["server.service"], upper_half);
    for (unsigned spare = 0; spare < 8; ++spare) {
        {
            const affinityd::test::NoDescriptorsLeft few(spare);
            instance.tasks().process_changed(10);
        }
        instance.finish();
        EXPECT_EQ(instance.systemd().units["server.service"], upper_half) << spare << " left";
    }
    put(10, "server", "/system.slice/other.service");
    instance.tasks().process_changed(10);
    instance.finish();
    EXPECT_TRUE(instance.systemd().units["server.service"].empty()) << "it has left the unit";
}

TEST_F(Units, AnAdministratorsSettingIsRestoredAfterACrashToo) {
    {
        Instance instance(machine_);
        instance.systemd().units["server.service"] = *CpuSet::parse_list("1-3");
        ASSERT_TRUE(instance.manager().start());
        instance.pass();
        EXPECT_EQ(instance.systemd().units["server.service"], upper_half);
    } // ended without stop()
    Instance again(machine_);
    again.systemd().units["server.service"] = upper_half;
    ASSERT_TRUE(again.manager().start());
    again.pass();
    again.stop();
    EXPECT_EQ(again.systemd().units["server.service"].to_list(), "1-3");
}

TEST_F(Units, WithoutAnAnswerAtTheEndAreLeftToALaterDaemon) {
    {
        Instance instance(machine_);
        instance.systemd().units["server.service"] = {};
        ASSERT_TRUE(instance.manager().start());
        instance.pass();
        instance.systemd().refusal = ETIMEDOUT;
        instance.stop();
        EXPECT_EQ(instance.log().times("could not be put back"), 1U);
    }
    Instance again(machine_);
    again.systemd().units["server.service"] = upper_half;
    ASSERT_TRUE(again.manager().start());
    again.stop();
    EXPECT_TRUE(again.systemd().units["server.service"].empty());
}

TEST_F(Units, WithForeignProcessesHaveNoFence) {
    put(20, "other", "/system.slice/server.service");
    procs("system.slice/server.service", "10\n20\n");
    Instance instance(machine_);
    instance.systemd().units["server.service"] = {};
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_TRUE(instance.systemd().units["server.service"].empty());
    EXPECT_EQ(problem(instance.status()), "process 20 of it is not under the policy: affinity alone is used");
    EXPECT_EQ(machine_.allowed(10, 10), "2-3") << "the masks hold all the same";
    procs("system.slice/server.service", "10\n");
    instance.pass();
    EXPECT_EQ(instance.systemd().units["server.service"], upper_half);
    procs("system.slice/server.service/below", "20\n"); // in a control group of its own below the unit's
    instance.pass();
    EXPECT_TRUE(instance.systemd().units["server.service"].empty())
        << "the fence goes when a foreign process comes";
}

TEST_F(Units, ThatCannotBeFencedAreShownAsProblems) {
    const std::vector<std::pair<std::string, std::string>> cases{
        {"/user.slice/user-1.slice/user@1.service/app.slice/server.service",
         "it is in no unit of the system: affinity alone is used"},
        {"/init.scope", "it is in no unit of the system: affinity alone is used"},
        {"/", "it is in no unit of the system: affinity alone is used"},
        {"/system.slice/absent.service",
         "systemd refuses: No such file or directory: affinity alone is used"}};
    for (const auto& [cgroup, message] : cases) {
        put(10, "server", cgroup);
        Instance instance(machine_);
        instance.systemd().missing = {"absent.service"};
        ASSERT_TRUE(instance.manager().start());
        instance.pass();
        EXPECT_EQ(problem(instance.status()), message) << cgroup;
        EXPECT_TRUE(instance.systemd().units["absent.service"].empty());
    }
}

TEST_F(Units, OnTheOldHierarchyMasksAloneAreUsed) {
    std::filesystem::remove(machine_.path("sys/fs/cgroup/cgroup.controllers"));
    Instance instance(machine_);
    instance.systemd().units["server.service"] = {};
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_EQ(problem(instance.status()),
              "cpusets of units need the unified cgroup hierarchy: affinity alone is used");
    EXPECT_TRUE(instance.systemd().units["server.service"].empty());
}

TEST_F(Units, DriftIsTreatedAsThePolicySays) {
    for (const auto& [drift, expected] :
         std::map<std::string, std::string>{{"enforce", "2-3"}, {"yield", "0-1"}}) {
        machine_.policy("server", "match: {comm: server}\ncpus: \"2-3\"\nbind: set\nmeans: cpuset\ndrift: " +
                                      drift + "\n");
        Instance instance(machine_);
        instance.systemd().units["server.service"] = {};
        ASSERT_TRUE(instance.manager().start());
        instance.pass();
        instance.systemd().units["server.service"] = *CpuSet::parse_list("0-1");
        instance.pass();
        EXPECT_EQ(instance.systemd().units["server.service"].to_list(), expected);
        instance.stop();
        EXPECT_EQ(instance.systemd().units["server.service"].to_list(), drift == "enforce" ? "" : "0-1")
            << "put back only where it is ours";
    }
}

TEST_F(Units, AReloadWithoutThePolicyTakesTheFenceAway) {
    Instance instance(machine_);
    instance.systemd().units["server.service"] = {};
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.policy("server", "match: {comm: server}\ncpus: \"1\"\nbind: set\n");
    ASSERT_TRUE(instance.reload());
    EXPECT_EQ(instance.status()["units"], json::array());
    instance.finish();
    EXPECT_TRUE(instance.systemd().units["server.service"].empty());
    EXPECT_EQ(machine_.allowed(10, 10), "1");
}

class MemoryFollows : public testing::Test {
  protected:
    MemoryFollows() {
        for (const auto& [node, cpus] : std::map<std::string, std::string>{{"0", "0-1"}, {"1", "2-3"}}) {
            machine_.tree().file("sys/devices/system/node/node" + node + "/cpulist", cpus + "\n");
            machine_.tree().file("sys/devices/system/node/node" + node + "/distance",
                                 node == "0" ? "10 20\n" : "20 10\n");
        }
        machine_.tree().file("sys/devices/system/node/online", "0-1\n");
        machine_.process(10, "server");
    }
    void policy(const std::string& rest) const {
        machine_.policy("server", "match: {comm: server}\nbind: set\nmemory: follow\n" + rest);
    }
    test::Machine machine_;
};

TEST_F(MemoryFollows, ToTheNodesOfTheMasksAndOnce) {
    policy("cpus: \"2-3\"\n");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    instance.pass();
    auto& moves = instance.enforcer().moves;
    ASSERT_EQ(moves.size(), 1U);
    EXPECT_EQ(moves[0].process.tid, 10);
    EXPECT_EQ(moves[0].from, (std::vector{0U}));
    EXPECT_EQ(moves[0].to, (std::vector{1U}));
    instance.enforcer().moved.push_back({moves[0], 0, 3, 12});
    instance.pass();
    EXPECT_EQ(instance.status()["processes"][0]["memory"],
              json::parse(R"({"nodes": [1], "state": "moved in 12 ms, 3 pages stayed"})"));
    policy("cpus: \"0\"\n");
    ASSERT_TRUE(instance.reload());
    instance.finish();
    ASSERT_EQ(moves.size(), 2U) << "another node, another move";
    EXPECT_EQ(moves[1].to, (std::vector{0U}));
    instance.enforcer().moved.push_back({moves[1], EPERM, 0, 0});
    instance.pass();
    EXPECT_EQ(instance.status()["processes"][0]["memory"]["state"], "not moved: Operation not permitted");
    EXPECT_EQ(instance.log().times("Operation not permitted"), 1U);
}

TEST_F(MemoryFollows, NothingMovesWhereItMayRunOnEveryNode) {
    policy("cpus: \"0-3\"\n");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_TRUE(instance.enforcer().moves.empty()) << "it may run on every node";
    EXPECT_EQ(instance.status()["processes"][0]["memory"]["state"], "stays");
    machine_.policy("server", "match: {comm: server}\ncpus: \"2\"\n");
    ASSERT_TRUE(instance.reload());
    instance.finish();
    EXPECT_TRUE(instance.enforcer().moves.empty()) << "the policy does not ask for it";
}

} // namespace
} // namespace affinityd::app
