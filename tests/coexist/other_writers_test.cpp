// SPDX-License-Identifier: Apache-2.0
// Others who set the masks of interrupts: what is found of them, and irqbalance kept off ours.
#include "app/other_writers.hpp"
#include "simulated.hpp"
#include "support/fake_irqbalance.hpp"

namespace affinityd::app {
namespace {

using affinityd::test::FakeIrqbalance;
using nlohmann::json;
using test::Instance;
using Irqs = std::vector<unsigned>;

template <class Done>
bool soon(Done done) {
    for (int i = 0; i < 1000 && !done(); ++i)
        ::usleep(5000);
    return done();
}

class OtherWritersTest : public testing::Test {
  protected:
    OtherWritersTest() {
        machine_.tree().folder("run");
        machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0,2\"\n");
    }
    static json named(const json& status, const std::string& name) {
        for (const auto& writer : status["other_writers"])
            if (writer["name"] == name) return writer;
        return nullptr;
    }
    test::Machine machine_;
};

TEST_F(OtherWritersTest, NobodyElseIsAnEmptyList) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_EQ(instance.status()["other_writers"], json::array());
}

TEST_F(OtherWritersTest, IrqbalanceLeavesOursAloneAndGetsItsListBack) {
    machine_.process(812, "irqbalance");
    machine_.tree().folder("run/irqbalance");
    FakeIrqbalance fake(machine_.path("run/irqbalance"), 812, {9, 31});
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_TRUE(soon([&] { return fake.banned() == Irqs{9, 30, 31}; })) << "its own and ours";
    const auto told = named(instance.status(), "irqbalance");
    EXPECT_EQ(told["where"], "pid 812");
    EXPECT_EQ(told["note"], "2 interrupts of ours are banned through its socket until we end");
    EXPECT_EQ(instance.log().times("also writing here: irqbalance"), 1U);
    const auto requests = fake.requests();
    instance.pass(true);
    EXPECT_EQ(fake.requests(), requests) << "it is told once";
    instance.manager().stop();
    EXPECT_TRUE(soon([&] { return fake.banned() == Irqs{9, 31}; }));
}

TEST_F(OtherWritersTest, AKilledOnesBansAreUndoneByTheNext) {
    machine_.process(812, "irqbalance");
    machine_.tree().folder("run/irqbalance");
    FakeIrqbalance fake(machine_.path("run/irqbalance"), 812, {9});
    {
        Instance killed(machine_);
        ASSERT_TRUE(killed.manager().start());
        killed.pass();
        ASSERT_TRUE(soon([&] { return fake.banned() == Irqs{9, 30, 31}; }));
    }
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    instance.manager().stop();
    EXPECT_TRUE(soon([&] { return fake.banned() == Irqs{9}; }));
}

TEST_F(OtherWritersTest, AnIrqbalanceThatCannotBeToldIsSaid) {
    machine_.process(812, "irqbalance");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_NE(named(instance.status(), "irqbalance")["note"].get<std::string>().find("--banirq"),
              std::string::npos);
    machine_.end(812);
    instance.pass();
    EXPECT_EQ(instance.status()["other_writers"], json::array()) << "it has ended";
}

TEST_F(OtherWritersTest, ADryRunTellsIrqbalanceNothing) {
    machine_.process(812, "irqbalance");
    machine_.tree().folder("run/irqbalance");
    FakeIrqbalance fake(machine_.path("run/irqbalance"), 812, {9});
    Instance instance(machine_, false);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_EQ(fake.requests(), 0U);
    EXPECT_TRUE(named(instance.status(), "irqbalance").is_object());
}

TEST_F(OtherWritersTest, SettingsAndScriptsAreFoundByFileAndLine) {
    machine_.process(900, "tuned");
    const auto& tree = machine_.tree();
    tree.file("etc/systemd/network/10-lan.link", "[Match]\nMACAddress=02:00:00:00:00:01\n\n[Link]\n#"
                                                 "IRQAffinityPolicy=all\nIRQAffinityPolicy=single\n");
    tree.file("usr/lib/systemd/network/99-default.link", "[Link]\nNamePolicy=keep kernel\n");
    tree.file("usr/lib/systemd/network/20-x.link", "[Link]\nReceivePacketSteeringCPUMask=all\n");
    tree.file("etc/rc.local", "#!/bin/sh\n# set_irq_affinity was here\n/opt/nic/set_irq_affinity.sh local "
                              "eth0\nset_irq_affinity eth1\n");
    tree.file("etc/cron.d/irq", "@reboot root echo 1 > /proc/irq/30/smp_affinity\n");
    tree.file("etc/cron.d/other", "@daily root true\n");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    std::vector<std::string> where;
    const auto status = instance.status();
    for (const auto& writer : status["other_writers"])
        where.push_back(writer["name"].get<std::string>() + " " + writer["where"].get<std::string>());
    EXPECT_EQ(where,
              (std::vector<std::string>{"tuned pid 900", "systemd.link /etc/systemd/network/10-lan.link:6",
                                        "systemd.link /usr/lib/systemd/network/20-x.link:2",
                                        "script /etc/cron.d/irq:1", "script /etc/rc.local:3"}));
    std::filesystem::remove(machine_.path("etc/rc.local"));
    instance.pass(true);
    EXPECT_EQ(instance.status()["other_writers"].size(), 5U) << "files are not read with each pass";
    instance.manager().apply();
    instance.finish();
    EXPECT_EQ(instance.status()["other_writers"].size(), 4U);
}

TEST_F(OtherWritersTest, ManyFilesAreBounded) {
    for (int i = 0; i < 100; ++i)
        machine_.tree().file("etc/cron.d/s" + std::to_string(i), "set_irq_affinity\n");
    const auto root = *host::Root::open(machine_.path());
    EXPECT_EQ(find_interrupt_settings(root).size(), 32U);
    machine_.tree().link("etc/rc.local", "/etc/cron.d/s1");
    EXPECT_LE(find_interrupt_settings(root, 200).size(), 101U);
}

} // namespace
} // namespace affinityd::app
