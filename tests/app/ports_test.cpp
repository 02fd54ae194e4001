// SPDX-License-Identifier: Apache-2.0
// Devices with several interfaces: each gets its own originals back.
#include "simulated.hpp"

namespace affinityd::app {
namespace {

using test::Instance;

class Ports : public testing::Test {
  protected:
    Ports() {
        machine_.add_nic("p0", "0000:00:07.0", 40);
        add_port("p1", 50);
        set("p0", "8");
        set("p1", "4");
        machine_.policy("nic", "affinity: irq\nnics: [\"p*\"]\ncpus: \"0\"\n");
    }
    /// Another interface of the same function, without interrupts.
    void add_port(const std::string& name, unsigned ifindex) const {
        const auto nic = net + name + "/";
        for (const char* file : {"rx-0/rps_cpus", "rx-1/rps_cpus", "tx-0/xps_cpus", "tx-1/xps_cpus"})
            machine_.tree().file(nic + "queues/" + file, "0\n");
        machine_.tree().file(nic + "ifindex", std::to_string(ifindex) + "\n");
        machine_.tree().file(nic + "flags", "0x1003\n");
        machine_.tree().file(nic + "operstate", "up\n");
        machine_.tree().link(nic + "device", "../..");
        machine_.tree().link("sys/class/net/" + name, "../../devices/pci0000:00/0000:00:07.0/net/" + name);
    }
    void set(const std::string& nic, const std::string& mask) const {
        for (const char* file : files)
            machine_.tree().file("sys/class/net/" + nic + "/queues/" + file, mask + "\n");
    }
    void expect(const std::string& nic, const std::string& mask) const {
        for (const char* file : files)
            EXPECT_EQ(machine_.steering(file, nic), mask) << nic << ' ' << file;
    }
    void expect_ours() const {
        for (const char* nic : {"p0", "p1"})
            EXPECT_EQ(machine_.steering("tx-0/xps_cpus", nic), "1") << nic;
    }
    void start(Instance& daemon) const {
        ASSERT_TRUE(daemon.manager().start());
        daemon.pass();
    }
    /// To another namespace; its device stays.
    void take_away(const std::string& name) const {
        std::filesystem::remove(machine_.path("sys/class/net/" + name));
        std::filesystem::create_directory(machine_.path(net + "../elsewhere"));
        std::filesystem::rename(machine_.path(net + name), machine_.path(net + "../elsewhere/" + name));
    }
    void bring_back(const std::string& name) const {
        std::filesystem::rename(machine_.path(net + "../elsewhere/" + name), machine_.path(net + name));
        machine_.tree().link("sys/class/net/" + name, "../../devices/pci0000:00/0000:00:07.0/net/" + name);
    }
    static constexpr auto files = {"rx-0/rps_cpus", "tx-0/xps_cpus", "tx-1/xps_cpus"};
    static inline const std::string net = "sys/devices/pci0000:00/0000:00:07.0/net/";
    test::Machine machine_;
};

TEST_F(Ports, GetTheirOwnOriginals) {
    Instance daemon(machine_);
    start(daemon);
    daemon.pass(true);
    expect_ours();
    daemon.stop();
    expect("p0", "8");
    expect("p1", "4");
    EXPECT_EQ(daemon.journal().size(), 0U);
}

TEST_F(Ports, GetTheirOwnOriginalsFromTheNextDaemonThoughTheySwappedTheirNames) {
    {
        Instance killed(machine_);
        start(killed);
    }
    machine_.rename_nic("p0", "pt", "0000:00:07.0");
    machine_.rename_nic("p1", "p0", "0000:00:07.0");
    machine_.rename_nic("pt", "p1", "0000:00:07.0");
    Instance daemon(machine_);
    start(daemon);
    expect_ours();
    daemon.stop();
    expect("p0", "4");
    expect("p1", "8");
}

TEST_F(Ports, GetTheirOwnOriginalsThoughOneIsElsewhereInTheMeantime) {
    Instance daemon(machine_);
    start(daemon);
    take_away("p1");
    machine_.policy("nic", "affinity: irq\nnics: [\"p*\"]\ncpus: \"1\"\n");
    ASSERT_TRUE(daemon.reload());
    daemon.finish();
    daemon.pass(true);
    EXPECT_EQ(machine_.steering("tx-0/xps_cpus", "p0"), "2");
    bring_back("p1");
    daemon.pass(true);
    EXPECT_EQ(machine_.steering("tx-0/xps_cpus", "p1"), "2");
    daemon.stop();
    expect("p0", "8");
    expect("p1", "4");
    EXPECT_EQ(daemon.journal().size(), 0U);
}

TEST_F(Ports, OneThatIsElsewhereAtTheEndGetsItsOwnOriginalFromTheNextDaemon) {
    {
        Instance daemon(machine_);
        start(daemon);
        take_away("p1");
        daemon.stop();
        expect("p0", "8");
    }
    bring_back("p1");
    Instance next(machine_);
    start(next);
    expect_ours();
    next.stop();
    expect("p0", "8");
    expect("p1", "4");
}

} // namespace
} // namespace affinityd::app
