// SPDX-License-Identifier: Apache-2.0
// Children whose parents were killed while no daemon ran.
#include "simulated.hpp"

namespace affinityd::app::test {
namespace {

constexpr int given_at = 200, born = 300;

class LeftChildren : public testing::Test {
  protected:
    LeftChildren() { machine_.process(10, "server"); }
    void policy(const std::string& more = {}) const {
        machine_.policy("server", "match: {comm: server}\ncpus: \"2\"\nbind: set\n" + more);
    }
    /// A daemon that places the server, and is killed.
    void place_and_be_killed() const {
        Instance instance(machine_);
        place(instance);
    }
    void place(Instance& instance) const {
        instance.enforcer().now = given_at;
        ASSERT_TRUE(instance.manager().start());
        instance.pass();
        ASSERT_EQ(machine_.allowed(10, 10), "2");
    }
    /// The server is killed, and leaves a child that nobody wants.
    void leave_child(const std::string& mask = "2", const std::string& group = server_group, int parent = 1,
                     int start = born, const std::string& comm = "child") const {
        machine_.end(10);
        machine_.process(50, comm, mask, parent, 0, start);
        move(50, group);
    }
    void move(int pid, const std::string& group) const {
        machine_.tree().file("proc/" + std::to_string(pid) + "/cgroup", "0::" + group + "\n");
    }
    void set_session(int pid, int session) const {
        const auto name = "proc/" + std::to_string(pid) + "/stat";
        auto text = machine_.text(name);
        const std::string before = " 1 1 0 -1 ";
        const auto at = text.find(before);
        ASSERT_NE(at, std::string::npos) << text;
        machine_.tree().file(
            name, text.replace(at, before.size(), " 1 " + std::to_string(session) + " 0 -1 ") + "\n");
    }
    void start(Instance& instance) const {
        instance.enforcer().now = 1000;
        ASSERT_TRUE(instance.manager().start());
        instance.pass();
    }
    void expect_that_it_stays(const std::string& mask, unsigned times_said) const {
        Instance next(machine_);
        start(next);
        next.pass();
        EXPECT_EQ(machine_.allowed(50, 50), mask);
        EXPECT_EQ(next.log().times("nothing shows"), times_said);
        next.stop();
        EXPECT_EQ(machine_.allowed(50, 50), mask);
    }
    static constexpr const char* server_group = "/system.slice/server.service";
    Machine machine_;
};

TEST_F(LeftChildren, OfTheControlGroupOfAPolicyGetTheOriginalWithAllTheirThreadsAndChildren) {
    policy();
    place_and_be_killed();
    leave_child();
    machine_.thread(50, 51, "child", "2", 1, 0, born + 1);
    machine_.process(60, "grandchild", "2", 50, 0, born + 2);
    move(60, server_group);
    Instance next(machine_);
    start(next);
    EXPECT_EQ(machine_.allowed(50, 50), "0-3");
    EXPECT_EQ(machine_.allowed(50, 51), "0-3");
    EXPECT_EQ(machine_.allowed(60, 60), "0-3");
    EXPECT_EQ(next.log().times("nothing shows"), 0U);
}

TEST_F(LeftChildren, OfTheSessionOfAPolicysProcessGetTheOriginalToo) {
    policy();
    set_session(10, 77);
    move(10, "/");
    place_and_be_killed();
    leave_child("2", "/");
    set_session(50, 77);
    Instance next(machine_);
    start(next);
    EXPECT_EQ(machine_.allowed(50, 50), "0-3");
}

TEST_F(LeftChildren, OfADaemonBeforeTheLastAreKnownToo) {
    policy();
    place_and_be_killed();
    machine_.end(10);
    {
        Instance second(machine_);
        start(second); // it drops the record of the server, and is killed, too
    }
    leave_child();
    Instance third(machine_);
    start(third);
    EXPECT_EQ(machine_.allowed(50, 50), "0-3");
}

TEST_F(LeftChildren, ThatAPolicyWantsGetTheOriginalAtTheEnd) {
    policy();
    place_and_be_killed();
    leave_child("2", server_group, 1, born, "server");
    Instance next(machine_);
    start(next);
    EXPECT_EQ(machine_.allowed(50, 50), "2");
    next.stop();
    EXPECT_EQ(machine_.allowed(50, 50), "0-3");
}

TEST_F(LeftChildren, BornBeforeTheMaskWasGivenHaveAMaskOfTheirOwn) {
    policy();
    place_and_be_killed();
    leave_child("2", server_group, 1, given_at - 1);
    expect_that_it_stays("2", 0);
}

TEST_F(LeftChildren, OfAnotherMaskHaveOneOfTheirOwn) {
    policy();
    place_and_be_killed();
    leave_child("1");
    expect_that_it_stays("1", 0);
}

TEST_F(LeftChildren, OfAnotherGroupAndSessionAreLeftAloneAndSaid) {
    policy();
    place_and_be_killed();
    leave_child("2", "/user.slice/user-1000.slice/session-1.scope");
    expect_that_it_stays("2", 1);
}

TEST_F(LeftChildren, WhoseParentIsThereAreItsOwnAndAreSaid) {
    policy();
    place_and_be_killed();
    leave_child("2", server_group, 40);
    machine_.process(40, "sh", "0-3", 1, 0, 50); // whoever typed taskset there
    move(40, server_group);
    expect_that_it_stays("2", 1);
}

TEST_F(LeftChildren, WhoseParentHadThatMaskAndHasAnotherGetTheOriginal) {
    policy();
    place_and_be_killed();
    machine_.policy("server", "match: {comm: server}\ncpus: \"3\"\nbind: set\n");
    machine_.process(50, "child", "2", 10, 0, born); // while no daemon runs
    move(50, server_group);
    {
        // The next one is killed before it comes to the child.
        std::filesystem::rename(machine_.path("proc/50"), machine_.path("away"));
        Instance second(machine_);
        start(second);
        ASSERT_EQ(machine_.allowed(10, 10), "3");
    }
    std::filesystem::rename(machine_.path("away"), machine_.path("proc/50"));
    Instance third(machine_);
    start(third);
    EXPECT_EQ(machine_.allowed(50, 50), "0-3");
}

TEST_F(LeftChildren, AfterAnOrderlyEndNobodyIsTakenForOne) {
    policy();
    {
        Instance instance(machine_);
        place(instance);
        instance.stop();
    }
    leave_child();
    expect_that_it_stays("2", 0);
}

TEST_F(LeftChildren, BornWhileTheDaemonEndsByParentsThatEndGetTheOriginal) {
    policy();
    Instance instance(machine_);
    place(instance);
    instance.enforcer().now = 2000;
    leave_child("2", server_group, 1, 1990);
    machine_.process(60, "child", "2", 1, 0, 1000); // its birth was told, and explained nothing
    move(60, server_group);
    machine_.process(70, "child", "2", 1, 0, 1990);
    move(70, "/user.slice");
    instance.stop();
    EXPECT_EQ(machine_.allowed(50, 50), "0-3");
    EXPECT_EQ(machine_.allowed(60, 60), "2");
    EXPECT_EQ(machine_.allowed(70, 70), "2");
}

TEST_F(LeftChildren, BornWhileTheDaemonEndsOfAPolicyThatKeepsAreKept) {
    policy("on_stop: keep\n");
    Instance instance(machine_);
    place(instance);
    instance.enforcer().now = 2000;
    leave_child("2", server_group, 1, 1990);
    instance.stop();
    EXPECT_EQ(machine_.allowed(50, 50), "2");
}

TEST_F(LeftChildren, OfAPolicyThatKeepsAtTheEndAreKept) {
    policy("on_stop: keep\n");
    {
        Instance instance(machine_);
        place(instance);
        instance.stop();
        ASSERT_EQ(machine_.allowed(10, 10), "2");
    }
    leave_child();
    expect_that_it_stays("2", 0);
}

TEST_F(LeftChildren, OfAPolicyThatKeptWhenItWasRemovedAreKept) {
    policy("on_stop: keep\n");
    machine_.policy("unrelated", "match: {comm: unrelated}\n");
    {
        Instance instance(machine_);
        place(instance);
        std::filesystem::remove(machine_.path("policies/server.yaml"));
        ASSERT_TRUE(instance.reload());
        instance.finish();
        ASSERT_EQ(machine_.allowed(10, 10), "2");
    }
    leave_child();
    expect_that_it_stays("2", 0);
}

} // namespace
} // namespace affinityd::app::test
