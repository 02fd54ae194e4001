// SPDX-License-Identifier: Apache-2.0
// Processes that are put into another control group, which no event tells.
#include "app/group_members.hpp"
#include "simulated.hpp"

#include <numeric>

namespace affinityd::app {
namespace {

using test::Instance;
using test::Machine;

class GroupMembersTest : public testing::Test {
  protected:
    GroupMembersTest() {
        machine_.policy("db", "match: {cgroup: \"/db.slice/*\"}\ncpus: \"2\"\nbind: set\n");
        machine_.process(10, "server");
        list("db.slice/a.service", {});
        EXPECT_TRUE(daemon_.manager().start());
        daemon_.pass();
        EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    }
    void list(const std::string& group, const std::vector<int>& pids) const {
        std::string text;
        for (const int pid : pids)
            text += std::to_string(pid) + "\n";
        machine_.tree().file("sys/fs/cgroup/" + group + "/cgroup.procs", text);
    }
    void move(int pid, const std::string& group) const {
        machine_.tree().file(fmt::format("proc/{}/cgroup", pid), "0::/" + group + "\n");
    }
    /// True if it asked for a pass.
    bool look_at(std::vector<std::string> groups) {
        bool are_too_many = false;
        const auto root = host::Root::open(machine_.path());
        GroupMembers job(root->sys(), daemon_.tasks(), std::move(groups), [&] { are_too_many = true; });
        for (unsigned step = 0; !job.step([] { return true; }); ++step)
            if (step > 100000) ADD_FAILURE() << "it never ends";
        daemon_.finish();
        return are_too_many;
    }
    Machine machine_;
    Instance daemon_{machine_};
};

TEST_F(GroupMembersTest, WhoComesIntoAGroupComesUnderItsPolicyAndWhoLeavesIsPutBack) {
    move(10, "db.slice/a.service");
    list("db.slice/a.service", {10});
    EXPECT_FALSE(look_at({"/db.slice/a.service"}));
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    move(10, "other.slice");
    list("other.slice", {10});
    EXPECT_FALSE(look_at({"/other.slice"}));
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    EXPECT_FALSE(daemon_.knows(10));
}

TEST_F(GroupMembersTest, SeveralGroupsAreLookedAtAndThoseThatAreGoneHaveNobody) {
    move(10, "db.slice/b.service");
    list("db.slice/b.service", {10});
    EXPECT_FALSE(look_at({"/db.slice/a.service", "/gone.slice", "/db.slice/b.service", ""}));
    EXPECT_EQ(machine_.allowed(10, 10), "2");
}

TEST_F(GroupMembersTest, ProcessesOfGroupsBelowAreNotConcerned) {
    move(10, "db.slice/a.service");
    list("db.slice/a.service", {10});
    EXPECT_FALSE(look_at({"/db.slice"}));
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
}

TEST_F(GroupMembersTest, AnotherCpusetIsKnownAtOnce) {
    machine_.policy("db", "match: {comm: server}\ncpus: \"0-2\"\nbind: set\n");
    const auto cpuset = [&](const std::string& name, const std::string& cpus) {
        machine_.tree().file("sys/fs/cgroup/" + name + "/cpuset.cpus.effective", cpus + "\n");
        machine_.tree().file("proc/10/cpuset", "/" + name + "\n");
        list(name, {10});
    };
    cpuset("narrow", "2-3");
    machine_.process(10, "server", "2-3");
    machine_.tree().file("proc/10/cpuset", "/narrow\n");
    ASSERT_TRUE(daemon_.reload());
    daemon_.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    cpuset("wide", "0-3");
    machine_.process(10, "server", "2");
    machine_.tree().file("proc/10/cpuset", "/wide\n");
    EXPECT_FALSE(look_at({"/wide"}));
    EXPECT_EQ(machine_.allowed(10, 10), "0-2");
}

TEST_F(GroupMembersTest, ThousandsAreLeftToAPass) {
    std::vector<int> many(GroupMembers::most + 1);
    std::iota(many.begin(), many.end(), 1000);
    list("big.slice", many);
    EXPECT_TRUE(look_at({"/big.slice"}));
}

} // namespace
} // namespace affinityd::app
