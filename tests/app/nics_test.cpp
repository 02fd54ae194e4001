// SPDX-License-Identifier: Apache-2.0
// Which interfaces status shows for a process, found by its sockets.
#include "simulated.hpp"

#include <map>

namespace affinityd::app {
namespace {

/// A process whose one socket is in the machine's tables.
class NicsTest : public testing::Test {
  protected:
    void tcp(const std::string& lines) const {
        machine_.tree().file("proc/net/tcp", "  sl  local_address rem_address   st tx_queue rx_queue tr "
                                             "tm->when retrnsmt   uid  timeout inode\n" +
                                                 lines);
    }
    static std::string line(const std::string& local, const std::string& remote, const char* state,
                            unsigned inode) {
        return "   0: " + local + " " + remote + " " + state +
               " 00000000:00000000 00:00000000 00000000     0        0 " + std::to_string(inode) +
               " 1 0000000000000000 100 0 0 10 0\n";
    }
    /// Names of the interfaces found for the process 10.
    std::vector<std::string> nics(const std::string& policy) {
        machine_.policy("p", policy);
        machine_.process(10, "server");
        machine_.tree().folder("proc/10/fd");
        if (!std::filesystem::is_symlink(machine_.path("proc/10/fd/3")))
            machine_.tree().link("proc/10/fd/3", "socket:[77]");
        test::Instance instance(machine_);
        EXPECT_TRUE(instance.manager().start());
        instance.pass();
        const auto status = instance.status();
        return status["processes"].empty() ? std::vector<std::string>{"no process"}
                                           : status["processes"][0]["nics"].get<std::vector<std::string>>();
    }
    test::Machine machine_;
    using Names = std::vector<std::string>;
};

TEST_F(NicsTest, AWildcardListenerUsesEveryRealInterface) {
    tcp(line("00000000:0050", "00000000:0000", "0A", 77));
    EXPECT_EQ(nics("match: {comm: server}\naffinity: full\n"), Names{"eth0"});
}

TEST_F(NicsTest, WithoutASocketNoInterfaceIsShown) {
    tcp(line("00000000:0050", "00000000:0000", "0A", 78));
    EXPECT_EQ(nics("match: {comm: server}\naffinity: full\n"), Names{}) << "another's socket";
}

TEST_F(NicsTest, AListenerOnLoopbackUsesNoInterface) {
    tcp(line("0100007F:0050", "00000000:0000", "0A", 77));
    EXPECT_EQ(nics("match: {comm: server}\naffinity: full\n"), Names{});
}

TEST_F(NicsTest, OneNamedNicIsShownWithoutASocket) {
    EXPECT_EQ(nics("match: {comm: server}\naffinity: full\nnics: [eth0]\n"), Names{"eth0"});
}

TEST_F(NicsTest, UnderAProcessPolicyNoSocketIsLookedAt) {
    tcp(line("00000000:0050", "00000000:0000", "0A", 77));
    EXPECT_EQ(nics("match: {comm: server}\naffinity: process\n"), Names{});
}

/// A process in another network namespace than the daemon.
class ElsewhereTest : public NicsTest {
  protected:
    ElsewhereTest() {
        tcp(line("00000000:0050", "00000000:0000", "0A", 77));
        machine_.tree().link("proc/self/ns/net", "net:[1]");
        for (const int pid : {10, 11}) {
            machine_.process(pid, "server");
            machine_.tree().folder(fmt::format("proc/{}/fd", pid));
            machine_.tree().link(fmt::format("proc/{}/fd/3", pid), "socket:[77]");
        }
        machine_.tree().link("proc/10/ns/net", "net:[2]");
        machine_.tree().link("proc/11/ns/net", "net:[1]");
    }
    const std::string unknown = "it is in another network namespace: its NICs are not known";
    const std::string as_process = "; affinity: full acts as process";
};

TEST_F(ElsewhereTest, IsSaidInStatusExplanationAndProblems) {
    machine_.policy("p", "match: {comm: server}\naffinity: full\n");
    test::Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    const auto status = instance.status();
    for (const auto& process : status["processes"]) {
        const bool is_here = process["pid"] == 11;
        EXPECT_EQ(process.value("nics_note", ""), is_here ? "" : unknown + as_process);
        EXPECT_EQ(process["nics"].get<Names>(), is_here ? Names{"eth0"} : Names{});
    }
    ASSERT_EQ(status["problems"].size(), 1U) << status["problems"];
    EXPECT_EQ(status["problems"][0]["message"],
              "process 10 is in another network namespace: which NICs serve it is not known" + as_process);
    EXPECT_EQ(instance.explain("10")["nics_note"], unknown + as_process);
    EXPECT_FALSE(instance.explain("11").contains("nics_note"));
    EXPECT_FALSE(test::policy_named(status, "p").contains("note"));
}

TEST_F(ElsewhereTest, WhereNoInterfaceIsKnownFullSaysThatItActsAsProcess) {
    machine_.end(11);
    machine_.policy("p", "match: {comm: server}\naffinity: full\n");
    test::Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    const auto status = instance.status();
    EXPECT_EQ(status["processes"][0]["nics_note"], unknown + as_process);
    EXPECT_EQ(test::policy_named(status, "p")["note"],
              "no NIC is known to serve its processes: affinity: full acts as process");
}

TEST_F(ElsewhereTest, ManyAreNotDrawnToTheLaneOfTheOneThatIsHere) {
    for (int pid = 12; pid < 20; ++pid) {
        machine_.process(pid, "server");
        machine_.tree().link(fmt::format("proc/{}/ns/net", pid), "net:[2]");
    }
    machine_.policy("p", "match: {comm: server}\naffinity: full\nbind: core\n");
    test::Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    for (int i = 0; i < 3; ++i)
        instance.pass();
    std::map<std::string, int> places;
    for (int pid = 10; pid < 20; ++pid)
        ++places[machine_.allowed(pid, pid)];
    EXPECT_EQ(places, (std::map<std::string, int>{{"0-1", 5}, {"2-3", 5}}));
}

TEST_F(ElsewhereTest, WhatIsNamedOrOfNoInterestIsNoProblem) {
    for (const char* policy : {"match: {comm: server}\naffinity: full\nnics: [eth0]\n",
                               "match: {comm: server}\naffinity: process\n"}) {
        machine_.policy("p", policy);
        test::Instance instance(machine_);
        ASSERT_TRUE(instance.manager().start());
        instance.pass();
        const auto status = instance.status();
        EXPECT_TRUE(status["problems"].empty()) << policy << status["problems"];
        EXPECT_FALSE(status["processes"][0].contains("nics_note")) << policy;
    }
}

TEST_F(NicsTest, WithoutASocketFullSaysThatItActsAsProcess) {
    machine_.policy("p", "match: {comm: server}\naffinity: full\n");
    machine_.process(10, "server");
    test::Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_EQ(instance.status()["processes"][0]["nics_note"],
              "no socket of it has named a NIC; affinity: full acts as process");
}

TEST_F(NicsTest, WhenSocketsCannotBeListedWhatIsKnownStays) {
    tcp(line("00000000:0050", "00000000:0000", "0A", 77));
    machine_.policy("p", "match: {comm: server}\naffinity: full\n");
    machine_.process(10, "server");
    machine_.tree().folder("proc/10/fd");
    machine_.tree().link("proc/10/fd/3", "socket:[77]");
    test::Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    instance.pass();
    const auto irq = machine_.irq(30);
    ASSERT_EQ(instance.status()["processes"][0]["nics"], nlohmann::json({"eth0"}));
    // A list that is no file cannot be read, as with EMFILE.
    std::filesystem::remove(machine_.path("proc/net/tcp"));
    machine_.tree().folder("proc/net/tcp");
    instance.pass();
    instance.pass();
    EXPECT_EQ(instance.status()["processes"][0]["nics"], nlohmann::json({"eth0"}));
    EXPECT_EQ(machine_.irq(30), irq) << "an incomplete count gives no lane away";
}

} // namespace
} // namespace affinityd::app
