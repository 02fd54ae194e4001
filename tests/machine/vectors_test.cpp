// SPDX-License-Identifier: Apache-2.0
#include "irq/reader.hpp"
#include "machine/vectors.hpp"

#include <gtest/gtest.h>

namespace affinityd::machine {
namespace {

using irq::Kind;
using netdev::Direction;
using netdev::Nic;

Nic make_nic(std::string name, std::string driver, std::vector<unsigned> irqs = {}) {
    Nic nic;
    nic.name = std::move(name);
    nic.driver = std::move(driver);
    nic.up = true;
    nic.pci = "0000:41:00.0";
    nic.device = "devices/pci0000:40/0000:41:00.0";
    nic.msi_irqs = std::move(irqs);
    return nic;
}

struct Named {
    unsigned number;
    const char* actions;
};

irq::InterruptTable make_table(std::initializer_list<Named> lines) {
    std::string text = "CPU0 CPU1 CPU2 CPU3\n";
    for (const auto& [number, actions] : lines)
        text += std::to_string(number) + ": 1 2 3 4  PCI-MSI " + std::to_string(number) + "-edge      " +
                actions + "\n";
    return irq::parse_interrupts(text);
}

/// "24 rx0 msi_irqs", one for each vector.
std::vector<std::string> shown(const std::vector<Vector>& vectors) {
    std::vector<std::string> lines;
    for (const auto& vector : vectors) {
        auto line = std::to_string(vector.irq) + " ";
        line += vector.kind == Kind::data_unknown ? "?" : to_string(vector.kind);
        if (vector.queue) line += std::to_string(*vector.queue);
        if (vector.tx_queue) line += "/" + std::to_string(*vector.tx_queue);
        line += " ";
        line += to_string(vector.source);
        lines.push_back(line);
    }
    return lines;
}

using Lines = std::vector<std::string>;

TEST(NicVectors, VectorsOfTheMsiListAreTakenWithWhatTheirLabelsSay) {
    const auto table = make_table({{23, "eth0"},
                                   {24, "eth0-TxRx-0"},
                                   {25, "eth0-TxRx-1"},
                                   {26, ""},
                                   {27, "nvme0q1"},
                                   {28, "eth00-TxRx-1"}});
    EXPECT_EQ(shown(nic_vectors(make_nic("eth0", "igb", {23, 24, 25, 26}), table)),
              (Lines{"23 control msi_irqs", "24 txrx0 msi_irqs", "25 txrx1 msi_irqs", "26 none msi_irqs"}));
}

TEST(NicVectors, OneNameIsNotTheBeginningOfAnother) {
    auto nic = make_nic("eth1", "stmmac");
    nic.pci.clear();
    nic.device = "devices/platform/eth-soc";
    const auto table = make_table({{24, "eth1:rx-0"}, {25, "eth10:rx-0"}, {26, "xeth1:rx-0"}});
    EXPECT_EQ(shown(nic_vectors(nic, table)), Lines{"24 rx0 label"});
}

TEST(NicVectors, LinesOfOneLabelAreToldApartByTheirOrder) {
    auto nic = make_nic("eth0", "bcmgenet");
    nic.pci.clear();
    const auto vectors = nic_vectors(nic, make_table({{31, "eth0"}, {32, "eth0"}}));
    EXPECT_EQ(shown(vectors), (Lines{"31 txrx label", "32 txrx label"}));
    EXPECT_EQ(vectors[0].ordinal, 0U);
    EXPECT_EQ(vectors[1].ordinal, 1U);
}

TEST(NicVectors, NetlinkIsBelievedBeforeLabels) {
    auto nic = make_nic("eth0", "ice", {24, 25, 26});
    netdev::Queue rx{Direction::rx, 0};
    rx.irq = 25;
    netdev::Queue tx{Direction::tx, 0};
    tx.irq = 25;
    netdev::Queue rx1{Direction::rx, 1};
    rx1.irq = 26;
    nic.queues = {rx, rx1, tx};
    const auto vectors = nic_vectors(
        nic, make_table({{24, "ice-0000:41:00.0:misc"}, {25, "ice-eth0-TxRx-0"}, {26, "ice-eth0-TxRx-5"}}));
    EXPECT_EQ(shown(vectors), (Lines{"24 control msi_irqs", "25 txrx0 netlink", "26 rx1 netlink"}));
    EXPECT_FALSE(vectors[1].clash);
    EXPECT_TRUE(vectors[2].clash);
}

TEST(NicVectors, NetlinkAloneIsEnough) {
    auto nic = make_nic("eth0", "unknown_driver");
    netdev::Queue rx{Direction::rx, 3};
    rx.irq = 40;
    nic.queues = {rx};
    EXPECT_EQ(shown(nic_vectors(nic, make_table({{40, "strange"}, {41, "strange"}}))),
              Lines{"40 rx3 netlink"});
}

TEST(NicVectors, EachSourceAloneGivesTheSame) {
    const auto table = make_table({{24, "eth0"}, {25, "eth0-TxRx-0"}, {26, "eth0-TxRx-1"}});
    const auto by_list = nic_vectors(make_nic("eth0", "igb", {24, 25, 26}), table);
    const auto by_label = nic_vectors(make_nic("eth0", "igb"), table);
    ASSERT_EQ(by_list.size(), by_label.size());
    for (std::size_t at = 0; at < by_list.size(); ++at) {
        EXPECT_EQ(by_list[at].irq, by_label[at].irq);
        EXPECT_EQ(by_list[at].kind, by_label[at].kind);
        EXPECT_EQ(by_list[at].queue, by_label[at].queue);
    }
}

TEST(NicVectors, LinesThatNameThePciFunctionBelongToItsInterface) {
    const auto table = make_table({{24, "mlx5_async0@pci:0000:41:00.0"},
                                   {25, "mlx5_comp0@pci:0000:41:00.0"},
                                   {26, "mlx5_comp0@pci:0000:41:00.1"}});
    EXPECT_EQ(shown(nic_vectors(make_nic("eth0", "mlx5_core"), table)),
              (Lines{"24 control label", "25 txrx0 label"}));
}

TEST(NicVectors, TwoPortsOnOneFunctionGetTheirOwnLines) {
    const auto table = make_table({{24, "mlx4-async@pci:0000:41:00.0"}, {25, "eth6-0"}, {26, "eth7-0"}});
    EXPECT_EQ(shown(nic_vectors(make_nic("eth6", "mlx4_core", {24, 25, 26}), table)),
              (Lines{"24 control msi_irqs", "25 txrx0 msi_irqs"}));
    EXPECT_EQ(shown(nic_vectors(make_nic("eth7", "mlx4_core", {24, 25, 26}), table)),
              (Lines{"24 control msi_irqs", "26 txrx0 msi_irqs"}));
}

TEST(NicVectors, RenamedInterfaceKeepsItsVectors) {
    const auto table = make_table({{24, "iavf-0000:41:00.0:mbx"}, {25, "iavf-eth0-TxRx-0"}});
    EXPECT_EQ(shown(nic_vectors(make_nic("net1", "iavf", {24, 25}), table)),
              (Lines{"24 control msi_irqs", "25 txrx0 msi_irqs"}));
}

TEST(NicVectors, SameNameInAnotherNamespaceIsAnother) {
    const auto table = make_table({{24, "iavf-net1-TxRx-0"}, {25, "iavf-net1-TxRx-0"}});
    EXPECT_EQ(shown(nic_vectors(make_nic("net1", "iavf", {25}), table)), Lines{"25 txrx0 msi_irqs"});
}

TEST(NicVectors, VirtioLinesAreFoundByTheListOrByTheName) {
    auto nic = make_nic("ens3", "virtio_net", {24, 25, 26});
    nic.virtio = "virtio1";
    const auto table = make_table({{24, "virtio1-config"},
                                   {25, "virtio1-input.0"},
                                   {26, "virtio1-output.0"},
                                   {27, "virtio10-config"},
                                   {28, "virtio10-input.0"}});
    EXPECT_EQ(shown(nic_vectors(nic, table)),
              (Lines{"24 control msi_irqs", "25 rx0 msi_irqs", "26 tx0 msi_irqs"}));
    nic.msi_irqs.clear();
    EXPECT_EQ(shown(nic_vectors(nic, table)), (Lines{"24 control label", "25 rx0 label", "26 tx0 label"}));
    nic.virtio = "virtio2";
    EXPECT_EQ(shown(nic_vectors(nic, make_table({{29, "virtio2-config"}, {30, "virtio2-virtqueues"}}))),
              (Lines{"29 control label", "30 txrx label"}));
}

TEST(NicVectors, NumbersOfTg3AndGveLabelsBecomeTheKernelsQueueNumbers) {
    EXPECT_EQ(shown(nic_vectors(make_nic("eth0", "tg3", {24, 25, 26}),
                                make_table({{24, "eth0-tx-0"}, {25, "eth0-rx-1"}, {26, "eth0-rx-2"}}))),
              (Lines{"24 tx0 msi_irqs", "25 rx0 msi_irqs", "26 rx1 msi_irqs"}));
    EXPECT_EQ(shown(nic_vectors(
                  make_nic("eth0", "gve", {24, 25, 26}),
                  make_table({{24, "eth%d-ntfy-block.0"}, {25, "eth%d-ntfy-block.1"}, {26, "eth%d-mgmnt"}}))),
              (Lines{"24 tx0 msi_irqs", "25 rx0 msi_irqs", "26 control msi_irqs"}));
    EXPECT_EQ(shown(nic_vectors(make_nic("eth0", "qlcnic", {24}), make_table({{24, "eth0-tx-0-rx-3"}}))),
              Lines{"24 txrx3/0 msi_irqs"});
}

TEST(NicVectors, ALegacyLineBelongsToTheInterfaceWhateverItsLabel) {
    auto nic = make_nic("eth1", "e1000");
    nic.legacy_irq = 16;
    EXPECT_EQ(shown(nic_vectors(nic, make_table({{16, "ehci_hcd:usb1, eth1"}}))), Lines{"16 txrx label"});
    EXPECT_TRUE(nic_vectors(nic, make_table({{16, "ehci_hcd:usb1, eth1"}}))[0].shared);
    EXPECT_EQ(shown(nic_vectors(nic, make_table({{16, "vendor_nic"}}))), Lines{"16 txrx legacy"});
}

TEST(NicVectors, UnknownLabelsOfTheDeviceCarryData) {
    const auto table = make_table({{24, "foo-a"}, {25, "foo-b"}});
    EXPECT_EQ(shown(nic_vectors(make_nic("eth0", "foo", {24, 25}), table)),
              (Lines{"24 ? msi_irqs", "25 ? msi_irqs"}));
    EXPECT_EQ(shown(nic_vectors(make_nic("eth0", "foo", {24}), table)), Lines{"24 txrx msi_irqs"});
    EXPECT_EQ(
        shown(nic_vectors(make_nic("eth0", "foo", {24, 25}), make_table({{24, "foo-a"}, {25, "eth0-rx-0"}}))),
        (Lines{"24 ? msi_irqs", "25 rx0 msi_irqs"}));
}

TEST(NicVectors, LinesThatNameThePlatformDeviceBelongToItsInterface) {
    auto nic = make_nic("eth0", "mtk_soc_eth");
    nic.pci.clear();
    nic.device = "devices/platform/15100000.ethernet";
    EXPECT_EQ(shown(nic_vectors(nic, make_table({{120, "15100000.ethernet"},
                                                 {121, "15100000.ethernet"},
                                                 {122, "15110000.ethernet"}}))),
              (Lines{"120 ? label", "121 ? label"}));
}

} // namespace
} // namespace affinityd::machine
