// SPDX-License-Identifier: Apache-2.0
// Bonds and bridges: a process, and the interrupts of all interfaces that serve it.
#include "simulated.hpp"

namespace affinityd::app {
namespace {

using nlohmann::json;
using test::Instance;
using Names = std::vector<std::string>;

/// Two nodes (CPUs 0-1 and 2-3), eth0 on the first and eth1 on the second, and a server.
class BondsTest : public testing::Test {
  protected:
    BondsTest() {
        machine_.tree().file("sys/devices/system/node/node0/cpulist", "0-1\n");
        machine_.tree().file("sys/devices/system/node/node1/cpulist", "2-3\n");
        machine_.add_nic("eth1", "0000:00:04.0", 40);
        machine_.tree().file("sys/devices/pci0000:00/0000:00:03.0/local_cpulist", "0-1\n");
        machine_.tree().file("sys/devices/pci0000:00/0000:00:04.0/local_cpulist", "2-3\n");
        machine_.tree().file("sys/devices/pci0000:00/0000:00:04.0/numa_node", "1\n");
        machine_.process(10, "server");
    }
    void add_upper(const std::string& name, unsigned index, const Names& lower) const {
        const std::string folder = "sys/devices/virtual/net/" + name + "/";
        machine_.tree().file(folder + "ifindex", std::to_string(index) + "\n");
        machine_.tree().file(folder + "flags", "0x1003\n");
        for (const auto& port : lower)
            machine_.tree().folder(folder + "lower_" + port);
        if (!std::filesystem::exists(machine_.path("sys/class/net/" + name)))
            machine_.tree().link("sys/class/net/" + name, "../../devices/virtual/net/" + name);
    }
    /// A bond of eth0 and eth1.
    void bond(const std::string& mode, const std::string& active = {}) const {
        add_upper("bond0", 90, {"eth0", "eth1"});
        set_bond("mode", mode);
        use(active);
    }
    void use(const std::string& active) const { set_bond("active_slave", active); }
    void policy(const std::string& nics) const {
        machine_.policy("p", "match: {comm: server}\naffinity: full\nbind: core\nnics: " + nics + "\n");
    }
    /// A process of which no socket is known.
    void wildcard_listener() const {
        machine_.tree().folder("proc/10/fd");
        machine_.tree().link("proc/10/fd/3", "socket:[77]");
        machine_.tree().file(
            "proc/net/tcp", "  sl  local_address rem_address   st\n"
                            "   0: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     "
                            "0        0 77 1 0000000000000000 100 0 0 10 0\n");
    }
    Names interrupts() const {
        return {machine_.irq(30), machine_.irq(31), machine_.irq(40), machine_.irq(41)};
    }
    static Names all(const char* cpu) { return Names(4, cpu); }
    /// Until nothing changes any more.
    static void settle(Instance& instance) {
        for (int i = 0; i < 3; ++i)
            instance.pass();
    }
    test::Machine machine_;

  private:
    void set_bond(const std::string& name, const std::string& value) const {
        machine_.tree().file("sys/devices/virtual/net/bond0/bonding/" + name, value + "\n");
    }
};

TEST_F(BondsTest, InterruptsOfBothPortsArriveOnTheServersCoreInEveryMode) {
    bond("802.3ad 4");
    policy("[bond0]");
    for (const char* mode : {"802.3ad 4", "balance-xor 2", "balance-rr 0"}) {
        bond(mode);
        Instance instance(machine_);
        ASSERT_TRUE(instance.manager().start());
        settle(instance);
        EXPECT_EQ(machine_.allowed(10, 10), "0-1") << mode;
        EXPECT_EQ(interrupts(), all("0")) << mode;
        EXPECT_EQ(machine_.steering("tx-0/xps_cpus", "eth1"), "3") << "sent from there, too";
        const auto status = instance.status();
        const auto lanes = test::policy_named(status, "p")["lanes"];
        EXPECT_EQ(lanes, json::parse(R"([{"nics": ["eth0", "eth1"], "spares": [], "cores": ["0-1"]}])"));
        EXPECT_EQ(test::policy_named(status, "p")["nics"], json({"eth0", "eth1"}));
        EXPECT_EQ(status["processes"][0]["nics"], json({"eth0", "eth1"}));
        instance.stop();
        EXPECT_EQ(interrupts(), all("0-3"));
    }
}

TEST_F(BondsTest, AFailoverMovesTheProcessWithItsInterrupts) {
    bond("active-backup 1", "eth1");
    policy("[bond0]");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    settle(instance);
    ASSERT_EQ(machine_.allowed(10, 10), "2-3");
    ASSERT_EQ(interrupts(), all("2"));
    EXPECT_EQ(test::policy_named(instance.status(), "p")["lanes"],
              json::parse(R"([{"nics": ["eth0", "eth1"], "spares": ["eth0"], "cores": ["2-3"]}])"));

    use("eth0");
    instance.manager().link_changed("bond0");
    instance.finish();
    EXPECT_EQ(interrupts(), all("0")) << "at once, for both ports";
    instance.pass(); // the next work
    EXPECT_EQ(machine_.allowed(10, 10), "0-1");
    EXPECT_EQ(interrupts(), all("0"));
    EXPECT_TRUE(instance.plan()["actions"].empty());
    EXPECT_EQ(test::policy_named(instance.status(), "p")["lanes"][0]["spares"], json({"eth1"}));

    use("eth1");
    instance.manager().link_changed("bond0");
    instance.finish();
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "2-3") << "and back";
    for (const bool by_event : {true, false}) {
        use("");
        if (by_event) instance.manager().link_changed("bond0");
        instance.finish();
        instance.pass(true);
        EXPECT_EQ(machine_.allowed(10, 10), "2-3") << "while no port has a link nobody moves";
        EXPECT_EQ(interrupts(), all("2"));
    }
    instance.stop();
    EXPECT_EQ(interrupts(), all("0-3"));
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
}

TEST_F(BondsTest, AFailoverWhileTheMachineIsReadIsNotForgottenAgain) {
    bond("active-backup 1", "eth1");
    policy("[bond0]");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    settle(instance);
    unsigned met = 0;
    for (unsigned moment = 0; moment < 60; ++moment) {
        const bool is_first = moment % 2 == 0;
        const auto wanted = all(is_first ? "0" : "2");
        instance.manager().begin_pass(true);
        for (unsigned i = 0; i < moment; ++i)
            instance.short_step();
        if (!instance.manager().work().passing()) break;
        use(is_first ? "eth0" : "eth1");
        instance.manager().link_changed("bond0");
        bool is_there = false, is_left = false;
        for (unsigned slices = 0; !instance.short_step() && slices < 10'000; ++slices) {
            const bool is_right = interrupts() == wanted;
            is_left = is_left || (is_there && !is_right);
            is_there = is_there || is_right;
        }
        EXPECT_TRUE(is_there) << moment;
        EXPECT_FALSE(is_left) << "what was read before the failover is older, after " << moment << " slices";
        settle(instance);
        ASSERT_EQ(interrupts(), wanted);
        ++met;
    }
    EXPECT_GT(met, 30U) << "while the machine was read";
}

TEST_F(BondsTest, AFailoverToANodeThatThePolicyMayNotUseIsAProblem) {
    bond("active-backup 1", "eth0");
    policy("[bond0]\ncpus: \"0-1\"");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    settle(instance);
    EXPECT_TRUE(instance.status()["problems"].empty());
    use("eth1");
    instance.manager().link_changed("bond0");
    instance.finish();
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "0-1");
    EXPECT_EQ(interrupts(), all("0"));
    const auto problems = instance.status()["problems"];
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_EQ(problems[0]["subject"], "eth1");
    EXPECT_NE(problems[0]["message"].get<std::string>().find("no CPU near it"), std::string::npos);
}

TEST_F(BondsTest, ExplainNamesTheInterfacesThatShareTheLane) {
    bond("802.3ad 4");
    policy("[bond0]");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    settle(instance);
    const auto reason = instance.explain("10")["threads"][0]["reason"].get<std::string>();
    EXPECT_NE(reason.find("the lane of eth0, eth1"), std::string::npos) << reason;
    const auto queues = instance.explain("eth1")["queues"];
    ASSERT_FALSE(queues.empty());
    bool is_said = false;
    for (const auto& queue : queues)
        is_said |= queue["reason"].get<std::string>().find("near eth0, with the tasks that both serve") !=
                   std::string::npos;
    EXPECT_TRUE(is_said) << queues.dump();
}

TEST_F(BondsTest, AWildcardListenerHasTheInterruptsOfAllInterfacesOnItsCore) {
    wildcard_listener();
    policy("auto");
    for (const bool is_bonded : {false, true}) {
        if (is_bonded) bond("802.3ad 4");
        Instance instance(machine_);
        ASSERT_TRUE(instance.manager().start());
        settle(instance);
        EXPECT_EQ(machine_.allowed(10, 10), "0-1") << is_bonded;
        EXPECT_EQ(interrupts(), all("0")) << is_bonded;
        EXPECT_EQ(instance.status()["processes"][0]["nics"], json({"eth0", "eth1"}));
        instance.stop();
    }
}

TEST_F(BondsTest, PortsOfGuestsKeepTheirSettings) {
    add_upper("br0", 91, {"eth1", "vnet0"});
    add_upper("vnet0", 92, {});
    const std::string guest = "sys/devices/virtual/net/vnet0/";
    machine_.tree().link(guest + "master", "../br0");
    for (const char* file : {"queues/rx-0/rps_cpus", "queues/tx-0/xps_cpus"})
        machine_.tree().file(guest + file, "8\n");
    policy("[br0]");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    settle(instance);
    EXPECT_EQ(machine_.allowed(10, 10), "2-3");
    EXPECT_EQ(interrupts(), (Names{"0-3", "0-3", "2", "2"}));
    EXPECT_EQ(machine_.steering("rx-0/rps_cpus", "vnet0"), "8");
    EXPECT_EQ(machine_.steering("tx-0/xps_cpus", "vnet0"), "8");
    const auto status = instance.status();
    EXPECT_FALSE(status["queues"].empty());
    for (const auto& queue : status["queues"])
        EXPECT_EQ(queue["nic"], "eth1");
    EXPECT_EQ(status["processes"][0]["nics"], json({"eth1"}));

    policy("[vnet0]");
    ASSERT_TRUE(instance.reload());
    settle(instance);
    EXPECT_NE(machine_.steering("tx-0/xps_cpus", "vnet0"), "8") << "the administrator's word";
    EXPECT_EQ(interrupts(), all("0-3"));
}

TEST_F(BondsTest, ABondThatComesLaterJoinsItsPorts) {
    policy("[\"eth*\"]");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    settle(instance);
    EXPECT_EQ(interrupts(), (Names{"0", "0", "2", "2"}))
        << "each for itself: nothing says that they belong together";
    bond("802.3ad 4");
    instance.manager().link_changed("bond0");
    instance.finish();
    instance.pass();
    EXPECT_EQ(interrupts(), all("0"));
    EXPECT_EQ(machine_.allowed(10, 10), "0-1");
}

TEST_F(BondsTest, WhoWasServedUnderAPolicyThatIsGoneCountsForNoLaterOneOfItsName) {
    policy("[eth0]");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    settle(instance);
    const auto usage = [&] { return instance.manager().in_force().world->usage(); };
    EXPECT_EQ(usage().size(), 1U);
    std::filesystem::remove(machine_.policies() + "/p.yaml");
    ASSERT_TRUE(instance.reload());
    settle(instance);
    EXPECT_TRUE(usage().empty());
}

} // namespace
} // namespace affinityd::app
