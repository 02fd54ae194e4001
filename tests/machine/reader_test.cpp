// SPDX-License-Identifier: Apache-2.0
// What stays known of an interface that does not answer for a moment, and what is read of one that changes.
#include "../inventory/recorded.hpp"
#include "../netdev/tree.hpp"
#include "host/root.hpp"
#include "machine/reader.hpp"
#include "netdev/channels.hpp"

#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace affinityd::machine {
namespace {

netdev::Nic nic(unsigned ifindex, std::optional<unsigned> queues, int fault) {
    netdev::Nic nic;
    nic.name = "eth0";
    nic.ifindex = ifindex;
    nic.folder = 70 + ifindex;
    nic.channels_fault = fault;
    if (queues) nic.channels = netdev::Channels{.combined = queues, .max_combined = 8};
    return nic;
}

TEST(ChannelsThatCannotBeRead, AreThoseThatTheInterfaceHad) {
    const auto before = nic(2, 4, 0);
    auto silent = nic(2, {}, ENODEV);
    keep_channels(silent, &before);
    EXPECT_EQ(silent.channels, before.channels);
    EXPECT_EQ(silent.channels_fault, ENODEV) << "so that it is asked again";
    auto another = nic(3, {}, ENODEV);
    keep_channels(another, &before);
    EXPECT_FALSE(another.channels) << "another interface has the name now";
    auto first = nic(2, {}, ENODEV);
    keep_channels(first, nullptr);
    EXPECT_FALSE(first.channels);
    auto without = nic(2, {}, 0); // another driver is bound to it
    keep_channels(without, &before);
    EXPECT_FALSE(without.channels);
}

TEST(ChannelsThatCannotBeRead, AreAskedForAgain) {
    Machine machine;
    machine.nics = {nic(2, 4, 0), nic(3, {}, ENODEV)};
    unsigned asked = 0;
    bool is_present = false;
    const auto ask = [&](std::span<netdev::Nic> nics) -> Result<void> {
        ++asked;
        EXPECT_EQ(nics.size(), 1U);
        if (is_present)
            nics[0].channels = netdev::Channels{.combined = 2, .max_combined = 8};
        else
            nics[0].channels_fault = ENODEV;
        return {};
    };
    EXPECT_FALSE(ask_again(machine, ask));
    EXPECT_EQ(machine.nics[1].channels_fault, ENODEV);
    is_present = true;
    EXPECT_TRUE(ask_again(machine, ask));
    EXPECT_EQ(machine.nics[1].channels->combined, 2U);
    EXPECT_FALSE(ask_again(machine, ask));
    EXPECT_EQ(asked, 2U) << "those that have answered are not asked";
}

TEST(ChannelsThatCannotBeRead, AreAskedForAlsoWhereThoseThatItHadWereKept) {
    const auto before = nic(2, 4, 0);
    auto silent = nic(2, {}, ENODEV);
    keep_channels(silent, &before);
    Machine machine;
    machine.nics = {silent};
    netdev::ChannelAnswers answers{{}, ENODEV};
    const auto ask = [&](std::span<netdev::Nic> nics) {
        return netdev::read_channels(nics, [&](auto) -> Result<netdev::ChannelAnswers> { return answers; });
    };
    EXPECT_FALSE(ask_again(machine, ask));
    EXPECT_EQ(machine.nics[0], silent) << "it did not answer, and keeps what it had";
    answers = {{{2, netdev::Channels{.combined = 2, .max_combined = 8}}}, 0};
    EXPECT_TRUE(ask_again(machine, ask));
    EXPECT_EQ(machine.nics[0].channels->combined, 2U) << "somebody has changed that meanwhile";
    EXPECT_EQ(machine.nics[0].channels_fault, 0);
}

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

TEST(WhatChangesWhileAMachineIsRead, IsYoungerThanWhatIsRead) {
    const auto make = [](std::string name, unsigned ifindex, std::string state) {
        auto made = nic(ifindex, {}, 0);
        made.name = std::move(name);
        made.operstate = std::move(state);
        return made;
    };
    Machine fresh, now;
    fresh.nics = {make("eth0", 2, "down"), make("eth1", 3, "up"), make("old0", 4, "up"),
                  make("gone0", 5, "up"), make("veth0", 6, "up")};
    now.nics = {make("eth0", 2, "up"), make("eth1", 3, "down"), make("lan0", 4, "up"), make("new0", 8, "up")};
    keep_younger(now, {"eth0", "lan0", "gone0", "new0"}, fresh);
    std::vector<std::string> found;
    for (const auto& one : fresh.nics)
        found.push_back(one.name + " " + one.operstate);
    EXPECT_EQ(found, (std::vector<std::string>{"eth0 up", "eth1 up", "lan0 up", "veth0 up", "new0 up"}));
    EXPECT_EQ(fresh.vectors.size(), 5U);
}

} // namespace
} // namespace affinityd::machine
