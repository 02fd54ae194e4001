// SPDX-License-Identifier: Apache-2.0
// Others who set the masks of interrupts: what is found of them, and irqbalance kept off those under policy.
#include "behaviours/neighbours/other_writers.hpp"
#include "host/root.hpp"
#include "support/fake_irqbalance.hpp"
#include "support/nobody.hpp"
#include "support/soon.hpp"
#include "support/tree.hpp"

#include <csignal>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::behaviours {
namespace {

using affinityd::test::FakeIrqbalance;
using affinityd::test::soon;
using Irqs = std::vector<unsigned>;

class OtherWritersTest : public testing::Test {
  protected:
    OtherWritersTest() {
        tree_.folder("proc");
        tree_.folder("sys");
        tree_.folder("run/irqbalance");
        root_.emplace(host::Root::open(tree_.path()).value());
        start();
    }
    void start(bool acts = true) {
        writers_.emplace(*root_, OtherWriters::Places{tree_.path("run"), tree_.path("run/irqbalance"), acts});
    }
    void process(int pid, unsigned user = 0) const {
        tree_.file(fmt::format("proc/{}/status", pid), fmt::format("Uid:\t{0}\t{0}\t{0}\t{0}\n", user));
    }
    /// A whole pass that saw these processes of this name.
    void pass(std::string_view comm = "", std::initializer_list<int> pids = {}) {
        writers_->begin_pass();
        for (const int pid : pids)
            writers_->see(pid, comm);
        writers_->finish_pass({30, 31});
        talk();
        for (auto& notice : writers_->take_notices())
            notices_.push_back(std::move(notice));
    }
    void talk() {
        while (writers_->is_talking()) {
            pollfd waiting{writers_->fd(), POLLIN, 0};
            ASSERT_EQ(::poll(&waiting, 1, 60'000), 1);
            writers_->handle();
        }
    }
    test::Tree tree_;
    std::optional<host::Root> root_;
    std::optional<OtherWriters> writers_;
    std::vector<std::string> notices_;
};

TEST_F(OtherWritersTest, NoOtherWriterIsAnEmptyList) {
    pass();
    EXPECT_TRUE(writers_->list().empty());
    EXPECT_TRUE(notices_.empty());
}

TEST_F(OtherWritersTest, IrqbalanceIsListedToldOnceAndGivenItsListBack) {
    FakeIrqbalance fake(tree_.path("run/irqbalance"), 812, {9, 31});
    process(812);
    pass("irqbalance", {812});
    EXPECT_TRUE(soon([&] { return fake.banned() == Irqs{9, 30, 31}; }));
    ASSERT_EQ(writers_->list().size(), 1U);
    EXPECT_EQ(writers_->list()[0].where, "pid 812");
    EXPECT_EQ(writers_->list()[0].note,
              "it runs, but leaves the 2 interrupts under policy alone until affinityd ends");
    pass("irqbalance", {812});
    ASSERT_EQ(notices_.size(), 1U);
    EXPECT_TRUE(notices_[0].starts_with("other programs here: irqbalance (pid 812): ")) << notices_[0];
    writers_->stop();
    talk();
    EXPECT_TRUE(soon([&] { return fake.banned() == Irqs{9, 31}; }));
    EXPECT_TRUE(writers_->take_notices().empty());
}

TEST_F(OtherWritersTest, AnIrqbalanceThatCannotBeToldIsSaidUntilItEnds) {
    process(812);
    pass("irqbalance", {812});
    ASSERT_EQ(writers_->list().size(), 1U);
    EXPECT_NE(writers_->list()[0].note.find("--banirq"), std::string::npos);
    pass();
    EXPECT_TRUE(writers_->list().empty());
}

TEST_F(OtherWritersTest, AFaultOfGivingTheListBackIsANotice) {
    process(812);
    {
        FakeIrqbalance fake(tree_.path("run/irqbalance"), 812, {9});
        pass("irqbalance", {812});
    }
    writers_->stop();
    talk();
    const auto notices = writers_->take_notices();
    ASSERT_FALSE(notices.empty());
    EXPECT_TRUE(notices[0].starts_with("irqbalance could not be given its own list back: "));
}

TEST_F(OtherWritersTest, ADryRunTellsIrqbalanceNothing) {
    FakeIrqbalance fake(tree_.path("run/irqbalance"), 812, {9});
    start(false);
    process(812);
    pass("irqbalance", {812});
    EXPECT_EQ(fake.requests(), 0U);
    EXPECT_EQ(writers_->list().size(), 1U);
}

TEST_F(OtherWritersTest, ANameThatAnyUserCanTakeProvesNothing) {
    FakeIrqbalance fake(tree_.path("run/irqbalance"), 812, {9});
    process(666, 65534);
    process(667, 65534);
    pass("irqbalance", {666});
    pass("tuned", {667});
    EXPECT_TRUE(writers_->list().empty());
    EXPECT_TRUE(notices_.empty());
    EXPECT_EQ(fake.requests(), 0U);
    process(669);
    pass("irqbalance", {669});
    EXPECT_EQ(writers_->list().size(), 1U);
}

TEST_F(OtherWritersTest, ALoadedSchedulerIsNamed) {
    tree_.file("sys/kernel/sched_ext/state", "enabled\n");
    tree_.file("sys/kernel/sched_ext/root/ops", "layered\n");
    pass();
    ASSERT_EQ(writers_->list().size(), 1U);
    EXPECT_EQ(writers_->list()[0].where, "layered");
    tree_.file("sys/kernel/sched_ext/state", "disabled\n");
    EXPECT_TRUE(writers_->list().empty());
}

TEST(LiveOtherWriters, AProcessOfAnotherUserByTheirNamesIsNone) {
    const auto root = host::Root::open("/").value();
    const test::Tree tree;
    for (const std::string name : {"irqbalance", "tuned"}) {
        int ready[2];
        ASSERT_EQ(::pipe(ready), 0);
        const int intruder = ::fork();
        if (intruder == 0) {
            using affinityd::test::nobody;
            const bool is_nobody =
                ::setresgid(nobody, nobody, nobody) == 0 && ::setresuid(nobody, nobody, nobody) == 0;
            ::prctl(PR_SET_NAME, name.c_str());
            if (!is_nobody || ::write(ready[1], "x", 1) != 1) ::_exit(1);
            for (;;)
                ::pause();
        }
        ::close(ready[1]);
        char byte = 0;
        EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "the test needs to be root";
        ::close(ready[0]);
        OtherWriters writers(root,
                             OtherWriters::Places{tree.path("run"), tree.path("run/irqbalance"), false});
        writers.begin_pass();
        writers.see(intruder, name);
        EXPECT_FALSE(writers.is_new(intruder, name)) << name;
        writers.finish_pass({});
        for (const auto& writer : writers.list())
            EXPECT_NE(writer.name, name);
        ::kill(intruder, SIGKILL);
        ::waitpid(intruder, nullptr, 0);
    }
}

} // namespace
} // namespace affinityd::behaviours
