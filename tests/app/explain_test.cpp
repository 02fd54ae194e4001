// SPDX-License-Identifier: Apache-2.0
// What `explain` says of threads that are left alone, and which line of which file it names.
#include "simulated.hpp"

namespace affinityd::app {
namespace {

using nlohmann::json;

class ExplainTest : public testing::Test {
  protected:
    void SetUp() override {
        machine_.process(10, "server");
        machine_.process(20, "other");
    }
    /// Starts with that policy file, and makes a pass.
    void start(const std::string& text) {
        machine_.policy("p", text);
        instance_.reset();
        instance_ = std::make_unique<test::Instance>(machine_);
        ASSERT_TRUE(instance_->manager().start());
        instance_->pass();
    }
    [[nodiscard]] json explain(int pid = 10) { return instance_->explain(std::to_string(pid)); }
    /// Of the thread with that place in the process.
    [[nodiscard]] std::string reason(std::size_t thread = 0, int pid = 10) {
        return explain(pid)["threads"][thread].value("reason", "none");
    }
    [[nodiscard]] std::string decided_by(std::size_t thread = 0, int pid = 10) {
        return explain(pid)["threads"][thread].value("decided_by", "none");
    }
    [[nodiscard]] std::string line(unsigned number) const {
        return machine_.path("policies/p.yaml:") + std::to_string(number);
    }
    test::Machine machine_;
    std::unique_ptr<test::Instance> instance_;
};

TEST_F(ExplainTest, APolicyIsNamedByTheLineOfItsMatch) {
    start("# A server.\ndescription: a server\nmatch:\n  comm: server\ncpus: \"2\"\nbind: set\n");
    EXPECT_EQ(decided_by(), line(4));
    EXPECT_EQ(explain()["considered"][0]["at"], line(4));
    EXPECT_EQ(explain(20)["considered"][0]["at"], line(4)) << "where it says what does not match";
    EXPECT_EQ(decided_by(0, 20), "none") << "no policy decided";
}

TEST_F(ExplainTest, APolicyWithoutMatchIsNamedByItsFirstLine) {
    start("default: true\ncpus: \"2\"\nbind: set\n");
    EXPECT_EQ(decided_by(), line(1));
}

TEST_F(ExplainTest, AThreadOfAPolicyThatIsNotAboutTasksIsLeftAlone) {
    for (const char* model : {"affinity: none\n", "affinity: irq\nnics: [eth0]\n"}) {
        start(std::string("match: {comm: server}\n") + model);
        EXPECT_EQ(reason(), "left alone: its policy says affinity: none or irq") << model;
        EXPECT_EQ(decided_by(), line(2)) << model;
    }
}

TEST_F(ExplainTest, AThreadThatARuleLeavesIsLeftAlone) {
    machine_.thread(10, 11, "io-1", "0-3", 1, 0, 101);
    start("match: {comm: server}\ncpus: \"2\"\nbind: set\nthreads:\n  - {name: other}\n  - {name: \"io-*\", "
          "leave: "
          "true}\n");
    EXPECT_EQ(reason(1), "thread rule 2: leave");
    EXPECT_EQ(decided_by(1), line(7));
    EXPECT_EQ(decided_by(0), line(2));
}

TEST_F(ExplainTest, AnInterruptThatNoPolicyPlacesSaysWhy) {
    machine_.add_handler(9, "acpi");
    start("match: {comm: server}\ncpus: \"2\"\nbind: set\n");
    const auto note = [&](const std::string& subject) {
        return instance_->explain(subject).value("note", "none");
    };
    for (const char* subject : {"irq:9", "acpi"})
        EXPECT_EQ(note(subject), "belongs to no NIC: no policy can place it");
    for (const char* subject : {"irq:30", "eth0-TxRx-0"})
        EXPECT_EQ(note(subject), "an interrupt of eth0: no policy places it");
    const auto missing = instance_->explain_text("irq:77");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().message, "this interrupt does not exist");
    EXPECT_FALSE(instance_->explain_text("irq:")) << "no number";
    start("affinity: irq\nnics: [eth0]\ncpus: \"0\"\n");
    EXPECT_EQ(note("irq:30"), "none") << "it is placed";
}

TEST_F(ExplainTest, AThreadWithAMaskOfItsOwnIsLeftAloneUnderPriorKeep) {
    machine_.process(10, "server", "1");
    start("match: {comm: server}\ncpus: \"2\"\nbind: set\nprior: keep\n");
    EXPECT_EQ(reason(), "left alone: its policy says prior: keep, and it has a mask of its own");
    EXPECT_EQ(decided_by(), line(2));
}

TEST_F(ExplainTest, AThreadOfAPolicyThatCannotBeCarriedOutIsLeftAlone) {
    start("match: {comm: server}\ncpus: \"3\"\nbind: set\n");
    machine_.tree().file("sys/devices/system/cpu/online", "0-2\n"); // its only CPU has gone
    machine_.process(10, "server", "0-2");
    instance_->pass(true);
    EXPECT_EQ(reason(), "left alone: its policy cannot be carried out on this machine");
    EXPECT_EQ(decided_by(), line(2));
}

TEST_F(ExplainTest, AThreadThatSomebodyElseMovedIsLeftAloneUnderDriftOnce) {
    start("match: {comm: server}\ncpus: \"2\"\nbind: set\ndrift: once\n");
    machine_.process(10, "server", "3");
    EXPECT_EQ(reason(), "left alone: somebody else changed it after us, and the policy gives way (drift)");
    EXPECT_EQ(decided_by(), line(2));
}

TEST_F(ExplainTest, AThreadThatNoPolicyWantsAnyMoreKeepsTheMaskThatSomebodyElseGaveIt) {
    start("match: {comm: server}\ncpus: \"2\"\nbind: set\n");
    machine_.process(10, "renamed", "3"); // the next pass forgets it
    EXPECT_EQ(reason(), "left alone: no policy wants it, and its mask is not ours");
    EXPECT_EQ(decided_by(), "none");
}

TEST_F(ExplainTest, AThreadThatSomebodyElseKeepsChangingIsLeftAloneForAWhile) {
    start("match: {comm: server}\ncpus: \"2\"\nbind: set\n");
    for (unsigned round = 0; round < 20 && reason().find("for a while") == std::string::npos; ++round) {
        machine_.process(10, "server", "3");
        instance_->pass();
    }
    EXPECT_EQ(machine_.allowed(10, 10), "3");
    EXPECT_EQ(reason(), "left alone for a while: somebody else keeps changing it");
    EXPECT_EQ(decided_by(), line(2));
}

TEST_F(ExplainTest, AThreadOutsideItsCpusetIsNamedWithIt) {
    machine_.tree().file("proc/10/cpuset", "/cage\n");
    machine_.tree().file("sys/fs/cgroup/cage/cpuset.cpus.effective", "0\n");
    machine_.process(10, "server", "0");
    start("match: {comm: server}\ncpus: \"2\"\nbind: set\nthreads: [{name: server, cpus: \"3\"}]\n");
    EXPECT_EQ(reason(), "its cpuset (0) has none of the policy's CPUs");
    EXPECT_EQ(decided_by(), line(5)) << "the rule names the CPUs";
}

TEST_F(ExplainTest, AKernelThreadThatMayNotBeMovedIsNoPolicysDoing) {
    machine_.process(30, "ksoftirqd/0", "0", 2, inventory::pf_kthread | inventory::pf_no_setaffinity);
    start("match: {comm: \"ksoftirqd/*\", kthread: true}\ncpus: \"2\"\nbind: set\n");
    EXPECT_EQ(reason(0, 30), "a kernel thread that the kernel does not let move");
    EXPECT_EQ(decided_by(0, 30), "none");
}

} // namespace
} // namespace affinityd::app
