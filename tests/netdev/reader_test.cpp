// SPDX-License-Identifier: Apache-2.0
#include "../support/no_descriptors_left.hpp"
#include "tree.hpp"

#include <algorithm>

namespace affinityd::netdev {
namespace {

const std::string function = "sys/devices/pci0000:00/0000:00:01.0/0000:41:00.0";

/// eth0: a PCI NIC with two queue pairs.
void add_pci_nic(const Tree& tree) {
    tree.link("sys/class/net/eth0", "../../devices/pci0000:00/0000:00:01.0/0000:41:00.0/net/eth0");
    tree.put(function + "/net/eth0/ifindex", "2\n");
    tree.put(function + "/net/eth0/address", "52:54:00:12:34:56\n");
    tree.put(function + "/net/eth0/flags", "0x1003\n");
    tree.put(function + "/net/eth0/operstate", "up\n");
    tree.put(function + "/net/eth0/queues/rx-0/rps_cpus", "00000000,0000000f\n");
    tree.put(function + "/net/eth0/queues/rx-0/rps_flow_cnt", "32768\n");
    tree.put(function + "/net/eth0/queues/rx-10/rps_cpus", "0\n");
    tree.put(function + "/net/eth0/queues/rx-2/rps_cpus", "0\n");
    tree.put(function + "/net/eth0/queues/tx-0/xps_cpus", "1\n");
    tree.folder(function + "/net/eth0/queues/tx-1");
    tree.link(function + "/net/eth0/device", "../../../0000:41:00.0");
    tree.link(function + "/driver", "../../../../bus/pci/drivers/ice");
    tree.put(function + "/numa_node", "1\n");
    tree.put(function + "/local_cpulist", "8-15\n");
    tree.put(function + "/irq", "0\n");
    for (const char* number : {"130", "99", "131"})
        tree.put(function + "/msi_irqs/" + number, "msix\n");
    // A bridge above the function has a node too, which must not be taken.
    tree.put("sys/devices/pci0000:00/0000:00:01.0/numa_node", "0\n");
}

TEST(ReadNics, MasksAreCutToThePossibleCpus) {
    const Tree tree;
    add_pci_nic(tree);
    tree.put("sys/devices/system/cpu/possible", "0-9\n");
    std::string words = "ffffffff";
    for (int word = 1; word < 1000; ++word)
        words += ",ffffffff";
    tree.put(function + "/net/eth0/queues/rx-2/rps_cpus", words + "\n");
    tree.put(function + "/local_cpulist", "8-1048575\n");
    const auto nics = tree.nics();
    ASSERT_EQ(nics.size(), 1U);
    EXPECT_EQ(nics[0].queues[1].steering, CpuSet::range(0, 9));
    EXPECT_EQ(nics[0].local_cpus, CpuSet::range(8, 9));
}

TEST(ReadNics, PciNicWithQueues) {
    const Tree tree;
    add_pci_nic(tree);
    const auto nics = tree.nics();
    ASSERT_EQ(nics.size(), 1U);
    const auto& nic = nics[0];
    EXPECT_EQ(nic.name, "eth0");
    EXPECT_EQ(nic.ifindex, 2U);
    EXPECT_EQ(nic.driver, "ice");
    EXPECT_EQ(nic.device, "devices/pci0000:00/0000:00:01.0/0000:41:00.0");
    EXPECT_EQ(nic.pci, "0000:41:00.0");
    EXPECT_EQ(nic.virtio, "");
    EXPECT_EQ(nic.mac, "52:54:00:12:34:56");
    EXPECT_TRUE(nic.up);
    EXPECT_EQ(nic.operstate, "up");
    EXPECT_EQ(nic.node, 1U);
    EXPECT_EQ(nic.local_cpus, CpuSet::range(8, 15));
    EXPECT_EQ(nic.msi_irqs, (std::vector<unsigned>{99, 130, 131}));
    EXPECT_EQ(nic.legacy_irq, std::nullopt);
    ASSERT_EQ(nic.queues.size(), 5U);
    EXPECT_EQ(nic.queues[0].steering, CpuSet::range(0, 3));
    EXPECT_EQ(nic.queues[0].flow_count, 32768U);
    EXPECT_EQ(nic.queues[1].index, 2U);
    EXPECT_EQ(nic.queues[2].index, 10U);
    EXPECT_EQ(nic.queues[3].direction, Direction::tx);
    EXPECT_EQ(nic.queues[3].steering, CpuSet({0}));
    EXPECT_EQ(nic.queues[4].steering, std::nullopt);
}

TEST(ReadNics, NodeMinusOneIsUnknown) {
    const Tree tree;
    add_pci_nic(tree);
    tree.put(function + "/numa_node", "-1\n");
    EXPECT_EQ(tree.nics().at(0).node, std::nullopt);
}

TEST(ReadNics, VectorsAreDirectoriesOnOldKernels) {
    const Tree tree;
    add_pci_nic(tree);
    tree.put(function + "/msi_irqs/77/mode", "msix\n");
    EXPECT_EQ(tree.nics().at(0).msi_irqs, (std::vector<unsigned>{77, 99, 130, 131}));
}

TEST(ReadNics, VirtioTakesItsVectorsAndNodeFromThePciParent) {
    const Tree tree;
    const std::string parent = "sys/devices/pci0000:00/0000:00:03.0";
    tree.link("sys/class/net/ens3", "../../devices/pci0000:00/0000:00:03.0/virtio1/net/ens3");
    tree.put(parent + "/virtio1/net/ens3/ifindex", "3\n");
    tree.link(parent + "/virtio1/net/ens3/device", "../../../virtio1");
    tree.link(parent + "/virtio1/driver", "../../../../bus/virtio/drivers/virtio_net");
    tree.put(parent + "/numa_node", "0\n");
    tree.put(parent + "/local_cpus", "f\n");
    tree.put(parent + "/msi_irqs/25", "msix\n");
    tree.put(parent + "/irq", "11\n");
    const auto nics = tree.nics();
    ASSERT_EQ(nics.size(), 1U);
    EXPECT_EQ(nics[0].virtio, "virtio1");
    EXPECT_EQ(nics[0].pci, "0000:00:03.0");
    EXPECT_EQ(nics[0].driver, "virtio_net");
    EXPECT_EQ(nics[0].node, 0U);
    EXPECT_EQ(nics[0].local_cpus, CpuSet::range(0, 3));
    EXPECT_EQ(nics[0].msi_irqs, std::vector<unsigned>{25});
}

TEST(ReadNics, LegacyLineOnlyWithoutVectors) {
    const Tree tree;
    tree.link("sys/class/net/eth1", "../../devices/pci0000:00/0000:00:05.0/net/eth1");
    tree.put("sys/devices/pci0000:00/0000:00:05.0/net/eth1/ifindex", "4\n");
    tree.link("sys/devices/pci0000:00/0000:00:05.0/net/eth1/device", "../../../0000:00:05.0");
    tree.put("sys/devices/pci0000:00/0000:00:05.0/irq", "11\n");
    tree.folder("sys/devices/pci0000:00/0000:00:05.0/msi_irqs");
    EXPECT_EQ(tree.nics().at(0).legacy_irq, 11U);
    tree.put("sys/devices/pci0000:00/0000:00:05.0/irq", "0\n");
    EXPECT_EQ(tree.nics().at(0).legacy_irq, std::nullopt);
}

TEST(ReadNics, StackedInterfacesNameTheirLowerOnes) {
    const Tree tree;
    tree.link("sys/class/net/bond0", "../../devices/virtual/net/bond0");
    tree.put("sys/devices/virtual/net/bond0/ifindex", "7\n");
    tree.folder("sys/devices/virtual/net/bond0/lower_eth0");
    tree.folder("sys/devices/virtual/net/bond0/lower_eth1");
    tree.put("sys/class/net/bonding_masters", "bond0\n");
    const auto nics = tree.nics();
    ASSERT_EQ(nics.size(), 1U); // and not the file
    EXPECT_EQ(nics[0].lower, (std::vector<std::string>{"eth0", "eth1"}));
    EXPECT_EQ(nics[0].device, "");
    EXPECT_EQ(nics[0].node, std::nullopt);
}

TEST(ReadNics, ABondNamesThePortThatItUses) {
    const Tree tree;
    const auto active = [&](const std::string& mode, const std::string& port) {
        tree.put("sys/class/net/bond0/bonding/mode", mode + "\n");
        tree.put("sys/class/net/bond0/bonding/active_slave", port + "\n");
        return tree.nics().at(0).active_lower;
    };
    tree.put("sys/class/net/bond0/ifindex", "7\n");
    tree.folder("sys/class/net/bond0/lower_eth0");
    tree.folder("sys/class/net/bond0/lower_eth1");
    EXPECT_EQ(active("active-backup 1", "eth1"), "eth1");
    EXPECT_EQ(active("active-backup 1", ""), "") << "no link at all";
    EXPECT_EQ(active("balance-tlb 5", "eth0"), "eth0");
    EXPECT_EQ(active("balance-alb 6", "eth0"), std::nullopt) << "all receive";
    EXPECT_EQ(active("802.3ad 4", ""), std::nullopt);
}

TEST(ReadNics, PortsNameWhatTheyArePortsOf) {
    const Tree tree;
    tree.put("sys/class/net/br0/ifindex", "2\n");
    tree.put("sys/class/net/veth1/ifindex", "3\n");
    tree.link("sys/class/net/veth1/master", "../br0");
    tree.put("sys/class/net/br0/uevent", "DEVTYPE=bridge\nINTERFACE=br0\nIFINDEX=2\n");
    EXPECT_EQ(tree.nics().at(0).master, "");
    EXPECT_EQ(tree.nics().at(1).master, "br0");
    tree.put("sys/class/net/br0/uevent", "DEVTYPE=vrf\nINTERFACE=br0\nIFINDEX=2\n");
    EXPECT_EQ(tree.nics().at(1).master, "") << "no switch";
}

TEST(ReadNics, WhatTakesPortsIsKnownByItsDriverAlsoWithoutAny) {
    const auto driver = [](const char* kind) {
        const Tree tree;
        tree.put("sys/class/net/top0/ifindex", "2\n");
        tree.put("sys/class/net/top0/uevent", std::string(kind) + "INTERFACE=top0\nIFINDEX=2\n");
        return tree.nics().at(0).driver;
    };
    EXPECT_EQ(driver("DEVTYPE=bond\n"), "bonding");
    EXPECT_EQ(driver("DEVTYPE=bridge\n"), "bridge");
    EXPECT_EQ(driver("DEVTYPE=vlan\n"), "");
    EXPECT_EQ(driver(""), "");
}

TEST(ReadNics, RepresentorsAreKnownByTheNameOfTheirPort) {
    const Tree tree;
    tree.link("sys/class/net/eth0", "../../devices/pci0000:00/0000:00:05.0/net/eth0");
    const std::string own = "sys/devices/pci0000:00/0000:00:05.0/net/eth0/";
    tree.put(own + "ifindex", "4\n");
    tree.link(own + "device", "../../../0000:00:05.0");
    const auto is_representor = [&](const std::string& port) {
        tree.put(own + "phys_port_name", port + "\n");
        return tree.nics().at(0).is_representor;
    };
    EXPECT_FALSE(tree.nics().at(0).is_representor);
    for (const char* port : {"pf0vf3", "pf12sf100", "c1pf0vf0"})
        EXPECT_TRUE(is_representor(port)) << port;
    for (const char* port : {"", "p0", "pf0", "pf0vf", "pfvf1", "p0s1", "pf0vf1x", "xpf0vf1", "c1"})
        EXPECT_FALSE(is_representor(port)) << port;
}

TEST(ReadNics, RecordingWithoutTheDeviceLink) {
    const Tree tree;
    tree.link("sys/class/net/ens3", "../../devices/pci0000:00/0000:00:03.0/virtio0/net/ens3");
    tree.folder("sys/devices/pci0000:00/0000:00:03.0/virtio0/net/ens3");
    tree.link("sys/class/net/lo", "../../devices/virtual/net/lo"); // leads nowhere
    tree.link("sys/class/net/out", "../../../../../../../../etc");
    const auto nics = tree.nics();
    ASSERT_EQ(nics.size(), 1U);
    EXPECT_EQ(nics[0].virtio, "virtio0");
    EXPECT_EQ(nics[0].pci, "0000:00:03.0");
    EXPECT_EQ(nics[0].driver, "virtio_net");
}

TEST(ReadNics, HostileFilesAreNotBelieved) {
    const Tree tree;
    add_pci_nic(tree);
    tree.put(function + "/net/eth0/flags", "0xzz\n");
    tree.put(function + "/net/eth0/ifindex", "99999999999\n");
    tree.put(function + "/numa_node", "99999999999999999999\n");
    tree.put(function + "/local_cpulist", "0-99999999999\n");
    tree.put(function + "/msi_irqs/x", "\n");
    tree.put(function + "/net/eth0/queues/rx-x/rps_cpus", "1\n");
    tree.put(function + "/net/eth0/queues/rx-99999999999/rps_cpus", "1\n");
    const auto nics = tree.nics();
    ASSERT_EQ(nics.size(), 1U);
    EXPECT_FALSE(nics[0].up);
    EXPECT_EQ(nics[0].ifindex, 0U);
    EXPECT_EQ(nics[0].node, std::nullopt);
    EXPECT_TRUE(nics[0].local_cpus.empty());
    EXPECT_EQ(nics[0].msi_irqs.size(), 3U);
    EXPECT_EQ(nics[0].queues.size(), 5U);
}

TEST(ReadNics, NoNetworkIsNoFault) {
    const Tree tree;
    tree.put("proc/interrupts", "");
    const auto root = host::Root::open(tree.path());
    ASSERT_TRUE(root);
    const auto nics = read_nics(*root);
    ASSERT_TRUE(nics);
    EXPECT_TRUE(nics->empty());
}

TEST(ReadNics, ListThatCannotBeReadIsNoMachineWithoutNics) {
    const Tree tree;
    tree.put("sys/class/net/eth0/ifindex", "2\n");
    tree.put("sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n");
    const auto root = host::Root::open(tree.path());
    ASSERT_TRUE(root);
    const test::NoDescriptorsLeft none;
    const auto nics = read_nics(*root);
    ASSERT_FALSE(nics);
    EXPECT_EQ(nics.error().code, EMFILE);
    const auto nic = read_nic(*root, "eth0");
    ASSERT_FALSE(nic) << "nor is the interface gone";
    EXPECT_EQ(nic.error().code, EMFILE);
}

TEST(ReadNics, AMapThatCannotBeReadIsThereAllTheSame) {
    const Tree tree;
    tree.put("sys/class/net/eth0/ifindex", "2\n");
    tree.folder("sys/class/net/eth0/queues/rx-0/rps_cpus"); // to read it fails
    tree.folder("sys/class/net/eth0/queues/rx-0/rps_flow_cnt");
    tree.folder("sys/class/net/eth0/queues/tx-0"); // a device of one transmit queue has no map
    const auto root = host::Root::open(tree.path());
    ASSERT_TRUE(root);
    const auto nics = read_nics(*root);
    ASSERT_TRUE(nics);
    const auto& queues = nics->at(0).queues;
    ASSERT_EQ(queues.size(), 2U);
    EXPECT_EQ(queues[0].steering, CpuSet{}) << "else what it was set to would be put back";
    EXPECT_EQ(queues[0].flow_count, 0U);
    EXPECT_FALSE(queues[1].steering);
}

TEST(ReadNic, IsTheSameAloneAsAmongAll) {
    const Tree tree;
    tree.put("sys/class/net/eth0/ifindex", "2\n");
    tree.put("sys/class/net/eth0/queues/rx-0/rps_cpus", "3\n");
    tree.put("sys/class/net/eth10/ifindex", "3\n");
    tree.put("sys/class/net/bonding_masters", "\n");
    const auto root = host::Root::open(tree.path());
    ASSERT_TRUE(root);
    const auto all = read_nics(*root);
    ASSERT_TRUE(all);
    ASSERT_EQ(all->size(), 2U);
    EXPECT_EQ(read_nic(*root, "eth0").value(), all->at(0));
    EXPECT_EQ(read_nic(*root, "eth10").value(), all->at(1));
    for (const char* name : {"eth1", "bonding_masters", "", ".", "..", "eth0/queues", "a-name-of-16-byte"})
        EXPECT_EQ(read_nic(*root, name).value(), std::nullopt) << name;
}

TEST(NicReader, LooksAtTheClockAfterEachQueueAndFindsTheSame) {
    const Tree tree;
    add_pci_nic(tree);
    tree.put("sys/class/net/eth1/ifindex", "1\n");
    for (int queue = 0; queue < 64; ++queue)
        tree.put("sys/class/net/eth1/queues/rx-" + std::to_string(queue) + "/rps_cpus", "1\n");
    const auto root = host::Root::open(tree.path());
    ASSERT_TRUE(root);
    NicReader reader(*root);
    unsigned parts = 1;
    while (true) {
        const auto done = reader.step([] { return true; });
        ASSERT_TRUE(done) << done.error().to_string();
        if (*done) break;
        ++parts;
    }
    EXPECT_GE(parts, 64U + 5U + 2U) << "queues and interfaces";
    EXPECT_EQ(reader.take(), tree.nics());
}

TEST(ReadNicsLive, LoopbackHasItsAddress) {
    const auto root = host::Root::open("/");
    ASSERT_TRUE(root);
    const auto nics = read_nics(*root);
    ASSERT_TRUE(nics) << nics.error().to_string();
    const auto lo = std::ranges::find(*nics, "lo", &Nic::name);
    ASSERT_NE(lo, nics->end());
    EXPECT_EQ(lo->up, std::ranges::find(lo->addresses, "127.0.0.1") != lo->addresses.end());
    EXPECT_EQ(lo->device, "");
    EXPECT_FALSE(lo->queues.empty());
}

} // namespace
} // namespace affinityd::netdev
