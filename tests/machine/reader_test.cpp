// SPDX-License-Identifier: Apache-2.0
// Reading again one interface that changes.
#include "../inventory/recorded.hpp"
#include "../netdev/tree.hpp"
#include "host/root.hpp"
#include "machine/reader.hpp"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace affinityd::machine {
namespace {

/// A real interface, one of a container, and many interrupts.
class InterfacesTest : public testing::Test {
  protected:
    static constexpr unsigned lines = 100;
    InterfacesTest() {
        tree.put("sys/devices/pci0000:00/0000:00:03.0/net/eth0/ifindex", "2\n");
        tree.link("sys/class/net/eth0", "../../devices/pci0000:00/0000:00:03.0/net/eth0");
        tree.link("sys/devices/pci0000:00/0000:00:03.0/net/eth0/device", "../../../0000:00:03.0");
        tree.put("sys/devices/virtual/net/veth1/ifindex", "7\n");
        tree.link("sys/class/net/veth1", "../../devices/virtual/net/veth1");
        std::string table = "     CPU0 CPU1\n";
        for (unsigned number = 30; number < 30 + lines; ++number) {
            const auto name = std::to_string(number);
            table += name + ": 1 2 PCI-MSI " + name + "-edge disk-" + name + "\n";
            tree.put("proc/irq/" + name + "/smp_affinity_list", "0-1\n");
        }
        tree.put("proc/interrupts", table);
    }
    [[nodiscard]] Machine read() const {
        Machine machine;
        const auto root = *host::Root::open(tree.path());
        machine.nics = *netdev::read_nics(root);
        machine.irqs = *irq::read_interrupts(root);
        return machine;
    }
    /// How often it asks whether its time is over.
    unsigned slices(const std::string& nic, Machine& machine) {
        const auto root = *host::Root::open(tree.path());
        InterfaceReader reader(root, nic, machine);
        unsigned count = 1;
        auto done = reader.step([] { return true; });
        for (; done && !*done; done = reader.step([] { return true; }))
            ++count;
        EXPECT_TRUE(done);
        reader.put_into(machine);
        return count;
    }
    netdev::Tree tree;
};

TEST_F(InterfacesTest, OneThatChangesIsReadInParts) {
    auto machine = read();
    ASSERT_EQ(machine.irqs.irqs.size(), lines);
    ASSERT_FALSE(machine.nic("eth0")->device.empty());
    machine.irqs = {};
    tree.put("sys/devices/pci0000:00/0000:00:03.0/net/eth0/operstate", "up\n");
    EXPECT_GT(slices("eth0", machine), lines);
    EXPECT_EQ(machine.nic("eth0")->operstate, "up");
    EXPECT_EQ(machine.irqs.irqs.size(), lines);
}

TEST_F(InterfacesTest, AContainersComesAndGoesWithoutAllInterrupts) {
    auto machine = read();
    const auto irqs = std::exchange(machine.irqs, {});
    EXPECT_LT(slices("veth1", machine), 5U);
    EXPECT_TRUE(machine.irqs.irqs.empty()) << "they were not read";
    std::filesystem::remove(tree.path() + "/" + "sys/class/net/veth1");
    EXPECT_LT(slices("veth1", machine), 5U);
    EXPECT_EQ(machine.nic("veth1"), nullptr);
    std::filesystem::remove(tree.path() + "/" + "sys/class/net/eth0");
    EXPECT_GT(slices("eth0", machine), lines);
    EXPECT_EQ(machine.nic("eth0"), nullptr);
    EXPECT_EQ(machine.irqs.irqs.size(), irqs.irqs.size());
}

TEST_F(InterfacesTest, OneThatMovesIntoAContainerKeepsItsInterruptsUntilItIsBack) {
    const std::string device = "sys/devices/pci0000:00/0000:00:03.0/";
    tree.link(device + "driver", "../../../bus/pci/drivers/igb");
    tree.put(device + "msi_irqs/30", "msix\n");
    auto machine = read();
    const auto irqs = [&](const std::string& nic) {
        std::vector<unsigned> numbers;
        for (const auto& vector : machine.vectors_of(nic))
            numbers.push_back(vector.irq);
        return numbers;
    };
    const auto read_again = [&] {
        const auto root = *host::Root::open(tree.path());
        MachineReader reader(root, &machine);
        for (auto done = reader.step([] { return false; }); done && !*done;)
            done = reader.step([] { return false; });
        machine = reader.take();
    };
    const std::vector<unsigned> own{30};
    std::filesystem::remove_all(tree.path() + "/" + device + "net/eth0");
    std::filesystem::remove(tree.path() + "/sys/class/net/eth0");
    const auto as_known = machine;
    for (const bool is_by_event : {true, false}) {
        machine = as_known;
        if (is_by_event)
            slices("eth0", machine);
        else
            read_again();
        EXPECT_EQ(machine.nic("eth0"), nullptr);
        ASSERT_NE(machine.nic("0000:00:03.0"), nullptr);
        EXPECT_EQ(irqs("0000:00:03.0"), own);
        EXPECT_EQ(machine.nic("0000:00:03.0")->driver, "igb");
        read_again();
        EXPECT_EQ(irqs("0000:00:03.0"), own);
    }
    tree.put(device + "net/eth5/ifindex", "2\n");
    tree.link("sys/class/net/eth5", "../../devices/pci0000:00/0000:00:03.0/net/eth5");
    tree.link(device + "net/eth5/device", "../../../0000:00:03.0");
    slices("eth5", machine);
    EXPECT_EQ(irqs("eth5"), own);
    EXPECT_EQ(machine.nic("0000:00:03.0"), nullptr);
    EXPECT_TRUE(machine.moved.empty());
    machine.moved = {"bus/pci/devices/0000:00:03.0", "bus/pci/devices/0000:00:04.0"};
    read_again();
    EXPECT_TRUE(machine.moved.empty()) << "the interface is here, and the other device has gone";
}

TEST_F(InterfacesTest, AKernelThreadThatTheKernelsListLacksStaysKnown) {
    const affinityd::test::RecordedTask napi{
        .id = 20, .comm = "napi/eth0-8193", .parent = 2, .flags = inventory::pf_kthread, .start = 7};
    tree.put("proc/20/stat", napi.stat());
    tree.put("proc/2/task/2/children", "21 ");
    auto machine = read();
    const std::vector<inventory::KernelThread> known{{{20, 7}, "napi/eth0-8193"}};
    machine.kernel_threads = known;
    slices("eth0", machine);
    EXPECT_EQ(machine.kernel_threads, known);
    const auto root = *host::Root::open(tree.path());
    MachineReader reader(root, &machine);
    auto done = reader.step([] { return false; });
    while (done && !*done)
        done = reader.step([] { return false; });
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(reader.take().kernel_threads, known);
}

} // namespace
} // namespace affinityd::machine
