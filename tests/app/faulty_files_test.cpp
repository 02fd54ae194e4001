// SPDX-License-Identifier: Apache-2.0
// Files with errors at the start and at a reload, on a machine of four CPUs out of files: whose policy is in
// force.
#include "simulated.hpp"

#include <algorithm>

namespace affinityd::app {
namespace {

using test::Instance;

class FaultyFilesTest : public testing::Test {
  protected:
    test::Machine machine_;
    static constexpr const char* bad = "match: {comm: server}\ncpuz: \"3\"\n";
    static std::string on(const std::string& comm, const std::string& cpus, const std::string& more = {}) {
        return "match: {comm: " + comm + "}\ncpus: \"" + cpus + "\"\nbind: set\n" + more;
    }
    /// Names of the policies in force, in their order.
    static std::string names(Instance& instance) {
        std::string text;
        for (const auto& policy : instance.manager().in_force().world->policies().policies)
            text += policy.name + " ";
        return text;
    }
    /// "NAME:LINE kept" or "NAME:LINE out" for each fault.
    static std::string faults(Instance& instance) {
        std::string text;
        const auto status = instance.status();
        for (const auto& fault : status["load"]["faults"])
            text += fault["policy"].get<std::string>() + ":" + std::to_string(fault["line"].get<int>()) +
                    (fault["in_force"] == "" ? " out " : " kept ");
        return text;
    }
};

TEST_F(FaultyFilesTest, AtTheStartOneBadFileIsLeftOutAndAllOthersAreInForce) {
    machine_.policy("server", bad);
    machine_.policy("other", on("other", "2"));
    machine_.process(10, "other");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    EXPECT_EQ(names(instance), "other ");
    EXPECT_EQ(faults(instance), "server:3 out ");
    EXPECT_EQ(instance.log().times("server.yaml:3:1: error: "), 1U) << instance.log().text();
    EXPECT_EQ(instance.status()["problems"][0]["policy"], "server");
}

TEST_F(FaultyFilesTest, AtAReloadTheRunningVersionStaysAndOthersChange) {
    machine_.policy("server", on("server", "2"));
    machine_.policy("other", on("other", "1"));
    machine_.process(10, "server");
    machine_.process(11, "other");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_EQ(instance.status()["load"]["ok"], true);
    machine_.policy("server", bad);
    machine_.policy("other", on("other", "3"));
    const auto answer = instance.reload();
    ASSERT_FALSE(answer);
    for (const char* part : {"server.yaml:3:1: error: ", "cpuz", "its last good version stays in force",
                             "1 file has errors; all others are in force"})
        EXPECT_NE(answer.error().message.find(part), std::string::npos) << answer.error().message;
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    EXPECT_EQ(machine_.allowed(11, 11), "3");
    EXPECT_EQ(faults(instance), "server:3 kept ");
    ASSERT_FALSE(instance.reload()) << "a second time, too";
    EXPECT_EQ(faults(instance), "server:3 kept ");

    machine_.policy("server", on("server", "0"));
    ASSERT_TRUE(instance.reload());
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "0");
    EXPECT_EQ(faults(instance), "");
}

TEST_F(FaultyFilesTest, AFileThatIsRemovedTakesItsLastGoodVersionWithIt) {
    machine_.policy("server", on("server", "2"));
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    machine_.policy("server", bad);
    ASSERT_FALSE(instance.reload());
    std::filesystem::remove(machine_.policies() + "/server.yaml");
    ASSERT_TRUE(instance.reload());
    EXPECT_EQ(names(instance), "");
    machine_.policy("server", bad);
    ASSERT_FALSE(instance.reload());
    EXPECT_EQ(names(instance), "");
    EXPECT_EQ(faults(instance), "server:3 out ");
}

TEST_F(FaultyFilesTest, OfTwoThatClaimOneCpuTheLaterIsLeftOutAtTheStartAndAtAReload) {
    const auto claim = [](const char* comm, const char* cpus, int priority) {
        return on(comm, cpus, "exclusive: true\npriority: " + std::to_string(priority) + "\n");
    };
    machine_.policy("a", claim("a", "1", 1));
    machine_.policy("b", claim("b", "1-2", 9));
    machine_.policy("c", claim("c", "3", 5));
    {
        Instance instance(machine_);
        ASSERT_TRUE(instance.manager().start());
        EXPECT_EQ(names(instance), "b c ");
        EXPECT_EQ(faults(instance), "a:3 out ");
    }
    machine_.policy("a", claim("a", "0", 1));
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    EXPECT_EQ(names(instance), "b c a ");
    // One that claims what is the first's is at fault itself; what it claims is free for those after it.
    machine_.policy("c", claim("c", "0,2", 5));
    ASSERT_FALSE(instance.reload());
    EXPECT_EQ(names(instance), "b c a ") << "c as it was before";
    EXPECT_EQ(faults(instance), "c:3 kept ");
    // What was there first gives way all the same: the outcome is that of a start.
    machine_.policy("c", claim("c", "3", 5));
    machine_.policy("b", claim("b", "3", 9));
    ASSERT_FALSE(instance.reload());
    EXPECT_EQ(names(instance), "b a ");
    EXPECT_EQ(faults(instance), "c:3 out ");
}

TEST_F(FaultyFilesTest, ALastGoodVersionThatConflictsIsLeftOut) {
    machine_.policy("server", on("server", "2", "exclusive: true\n"));
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    machine_.policy("server", bad);
    machine_.policy("first", on("first", "2", "exclusive: true\npriority: 9\n"));
    const auto answer = instance.reload();
    ASSERT_FALSE(answer);
    EXPECT_EQ(names(instance), "first ");
    EXPECT_EQ(faults(instance), "server:3 out ");
    EXPECT_NE(answer.error().message.find("so has its last good version"), std::string::npos)
        << answer.error().message;
}

TEST_F(FaultyFilesTest, OfARingOneIsLeftOut) {
    machine_.policy("a", on("a", "1", "") + "priority: 3\n");
    machine_.policy("b", "match: {parent: c}\ncpus: \"1\"\npriority: 2\n");
    machine_.policy("c", "match: {parent: b}\ncpus: \"1\"\npriority: 1\n");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    EXPECT_EQ(names(instance), "a b ");
    EXPECT_EQ(faults(instance), "c:2 out ");
}

TEST_F(FaultyFilesTest, WhatWasReleasedStaysReleasedWhileItsFileHasErrors) {
    machine_.policy("server", on("server", "2"));
    machine_.policy("other", on("other", "1"));
    machine_.process(10, "server");
    machine_.process(11, "other");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    ASSERT_TRUE(instance.release(""));
    instance.finish();
    machine_.policy("server", bad);
    ASSERT_FALSE(instance.reload());
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    EXPECT_EQ(machine_.allowed(11, 11), "1");
}

TEST_F(FaultyFilesTest, AFileThatCannotBeReadIsOneWithErrors) {
    machine_.policy("other", on("other", "2"));
    std::filesystem::create_directory(machine_.policies() + "/folder.yaml");
    std::filesystem::create_symlink("nowhere", machine_.policies() + "/link.yaml");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    EXPECT_EQ(names(instance), "other ");
    EXPECT_EQ(faults(instance), "folder:0 out link:0 out ");
}

TEST_F(FaultyFilesTest, ManyAtOnceAreReadAndReplacedOneAfterTheOther) {
    constexpr unsigned count = 60;
    const auto name = [](unsigned i) { return "policy" + std::to_string(i); };
    for (unsigned i = 0; i < count; ++i)
        machine_.policy(name(i), on(name(i), "1"));
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    const auto before = names(instance);
    for (unsigned i = 0; i < count; ++i)
        machine_.policy(name(i), bad);
    bool is_answered = false;
    instance.manager().reload([&](const auto&) { is_answered = true; }, Until::begun, ReloadReason::asked);
    unsigned steps = 0;
    while (!is_answered && ++steps < 100'000)
        instance.short_step();
    EXPECT_GE(steps, 3 * count) << "each file is read, then checked, then replaced by what was in force";
    EXPECT_EQ(names(instance), before);
    EXPECT_EQ(instance.status()["load"]["faults"].size(), count);
    EXPECT_NE(faults(instance).find("policy59:3 kept"), std::string::npos) << faults(instance);
}

} // namespace
} // namespace affinityd::app
