// SPDX-License-Identifier: Apache-2.0
#include "irq/classify.hpp"
#include "irq/labels.hpp"
#include "irq/reader.hpp"
#include "machine/labels.hpp"

#include <gtest/gtest.h>

namespace affinityd::irq {
namespace {

struct Case {
    const char* action;
    Kind kind;
    const char* device;
    int queue; ///< -1: none
    const char* pci = "";
    const char* virtio = "";
    bool is_nic = true;
};

class Labels : public testing::TestWithParam<Case> {};

TEST_P(Labels, AreRead) {
    const auto& expected = GetParam();
    const auto match = machine::builtin_labels()->match(expected.action, {});
    const auto label = match ? match->label : Label{};
    EXPECT_EQ(label.kind, expected.kind);
    EXPECT_EQ(label.device, expected.device);
    EXPECT_EQ(label.queue ? static_cast<int>(*label.queue) : -1, expected.queue);
    EXPECT_EQ(label.pci, expected.pci);
    EXPECT_EQ(label.virtio, expected.virtio);
    EXPECT_EQ(label.is_nic, expected.is_nic);
}

using enum Kind;
INSTANTIATE_TEST_SUITE_P(
    Drivers, Labels,
    testing::Values(
        Case{"eth0-TxRx-3", txrx, "eth0", 3}, Case{"eth10-TxRx-3", txrx, "eth10", 3},
        Case{"i40e-eth0-TxRx-0", txrx, "eth0", 0},
        Case{"i40e-0000:c3:00.0:fdir-TxRx-0", control, "", -1, "0000:c3:00.0"},
        Case{"i40e-0000:c3:00.0:misc", control, "", -1, "0000:c3:00.0"},
        Case{"ice-lan1-TxRx-0-1", txrx, "lan1", 0},
        Case{"ice-0000:65:00.0:ctrl-TxRx-0", control, "", -1, "0000:65:00.0"},
        Case{"iavf-net1-TxRx-2", txrx, "net1", 2}, Case{"idpf-eth0-TxRx-5", txrx, "eth0", 5},
        Case{"idpf-eth0-Mailbox-0", control, "eth0", -1},
        Case{"mlx5_comp12@pci:0000:41:00.1", txrx, "", 12, "0000:41:00.1"},
        Case{"mlx5_async0@pci:4ea0:00:02.0", control, "", -1, "4ea0:00:02.0"},
        Case{"mlx5_comp1@pci:10000:00:02.0", txrx, "", 1, "10000:00:02.0"},
        Case{"mlx4-comp-1@pci:0000:07:00.0", none, "", -1, "0000:07:00.0"},
        Case{"mlx4-7@0000:07:00.0", txrx, "", 7, "0000:07:00.0"},
        Case{"mana_q3@pci:7870:00:00.0", txrx, "", 3, "7870:00:00.0"}, Case{"eth0-Tx-Rx-7", txrx, "eth0", 7},
        Case{"gve-ntfy-blk4@pci:0000:00:04.0", data_unknown, "", 4, "0000:00:04.0"},
        Case{"virtio12-input.0", rx, "", 0, "", "virtio12"},
        Case{"virtio1-output.3", tx, "", 3, "", "virtio1"},
        Case{"virtio1-config", none, "", -1, "", "virtio1", false},
        Case{"virtio1-virtqueues", none, "", -1, "", "virtio1", false},
        Case{"virtio1-req.0", none, "", -1, "", "", false},
        Case{"virtio3-input", none, "", -1, "", "", false}, // virtio_console has a queue of that name
        Case{"hns3-0000:7d:00.0-TxRx-0", txrx, "", 0, "0000:7d:00.0"}, Case{"hns3-eth2-Rx-4", rx, "eth2", 4},
        Case{"enp5s0f1-rxtx-0", txrx, "enp5s0f1", 0}, Case{"enp5s0f1-qset-err-0", control, "enp5s0f1", -1},
        Case{"eth0-event-4", control, "eth0", -1}, Case{"enp5s0f4 (queue 17)", rx, "enp5s0f4", 17},
        Case{"eth0-tx-0-rx-3", txrx, "eth0", 3}, Case{"eth0:rx-7", rx, "eth0", 7},
        Case{"eth0:safety-ue", control, "eth0", -1}, Case{"eth0-q3", txrx, "eth0", 3},
        Case{"eth0-q3-tx", tx, "eth0", 3}, Case{"eth0-fp-2", txrx, "eth0", 2},
        Case{"enp4s0f0np0-TxRx-", data_unknown, "enp4s0f0np0", -1}, Case{"eth3_g1_tx", tx, "eth3", 1},
        Case{"skge@pci:0000:05:00.0", txrx, "", -1, "0000:05:00.0"}, Case{"eth0", control, "eth0", -1},
        Case{"enahisic2i0-rx15", rx, "enahisic2i0", 15}, Case{"enahisic2i0-tx15", tx, "enahisic2i0", 15},
        Case{"eth0-txc-1", tx, "eth0", 1}, Case{"my-nic-rx-1", rx, "my-nic", 1},
        Case{"enp2s0f1np1", control, "enp2s0f1np1", -1}));

INSTANTIATE_TEST_SUITE_P(
    NoNic, Labels,
    testing::Values(
        Case{"", none, "", -1, "", "", false}, Case{"nvme0q3", none, "", -1, "", "", false},
        Case{"hpsa0-msix3", none, "", -1, "", "", false}, Case{"lpfc:36", none, "", -1, "", "", false},
        Case{"ahci[0000:00:1f.2]", none, "", -1, "", "", false},
        Case{"iwlwifi: queue 1", none, "", -1, "", "", false},
        Case{"xhci-hcd:usb1", none, "", -1, "", "", false}, Case{"timer", none, "", -1, "", "", false},
        Case{"dpio.3", none, "", -1, "", "", false}, Case{"wlan0", none, "", -1, "", "", false},
        Case{"mt7530-0:01", none, "", -1, "", "", false}, Case{"hpet2", none, "", -1, "", "", false},
        Case{"ipmi_si", none, "", -1, "", "", false}, Case{"i915", none, "", -1, "", "", false},
        Case{"a-name-longer-than-any-TxRx-0", none, "", -1, "", "", false},
        Case{"eth0-TxRx-99999999999", none, "", -1, "", "", false}));

TEST(LabelTable, NoPatternHidesALaterOne) {
    // Each pattern, filled in, must be read by itself and not by one before it.
    const auto table = machine::builtin_labels();
    ASSERT_GT(table->patterns().size(), 100U) << "the built-in file has an error";
    for (const auto& pattern : table->patterns()) {
        auto text = pattern.label;
        for (const auto& [slot, value] : {std::pair{"{IF}", "eth7"},
                                          {"{NIC}", "eth7"},
                                          {"{PCI}", "0000:41:00.3"},
                                          {"{VIRTIO}", "virtio5"},
                                          {"{PLATFORM}", "15100000.ethernet"},
                                          {"{N}", "3"},
                                          {"{T}", "2"},
                                          {"{X}", "9"}})
            if (const auto at = text.find(slot); at != std::string::npos)
                text.replace(at, std::string_view(slot).size(), value);
        const auto match = table->match(text, {}, pattern.only ? pattern.driver : "");
        ASSERT_TRUE(match) << text;
        EXPECT_EQ(match->pattern->label, pattern.label) << text;
    }
}

TEST(LabelTable, FaultsOfPatternsHaveTheirPlace) {
    for (const auto& [text, offset] :
         {std::pair{"", 0}, {"a{", 1}, {"ab}", 2}, {"x{Q}", 1}, {"{N}{N}", 3}, {"{IF}-{NIC}", 5}}) {
        const auto fault = LabelTable::check(text);
        ASSERT_TRUE(fault) << text;
        EXPECT_EQ(fault->offset, static_cast<std::size_t>(offset)) << text;
    }
    EXPECT_FALSE(LabelTable::check("{IF}-{X}-{X}-{N}"));
}

std::vector<Line> classify_names(std::vector<std::string> names, std::vector<Device> known = {}) {
    InterruptTable table;
    table.labels = machine::builtin_labels();
    table.cpus.resize(16);
    unsigned number = 30;
    for (auto& name : names) {
        auto& line = table.irqs.emplace_back();
        line.number = number++;
        line.actions.push_back(std::move(name));
    }
    return classify(table, known);
}

TEST(Classify, BareNameIsControlBesideItsOwnQueuesOnly) {
    const auto lines = classify_names({"eth1", "eth10-TxRx-0", "eth10"});
    EXPECT_EQ(lines[0].label.kind, txrx);
    EXPECT_EQ(lines[2].label.kind, control);
}

TEST(Classify, SeveralBareLinesAllCarryData) {
    for (const auto& line : classify_names({"eth0", "eth0", "eth0"}))
        EXPECT_EQ(line.label.kind, txrx);
}

TEST(Classify, Tg3CountsFromTheSecondVector) {
    const auto lines = classify_names({"eth0-tx-0", "eth0-rx-1", "eth0-rx-2"});
    EXPECT_EQ(lines[0].label.rx_queue, std::nullopt);
    EXPECT_EQ(lines[1].label.rx_queue, 0U);
    EXPECT_EQ(lines[2].label.rx_queue, 1U);
    const auto other = classify_names({"eth0-tx-0", "eth0-rx-0", "eth0-rx-1"});
    EXPECT_EQ(other[2].label.rx_queue, std::nullopt);
    // With the driver known, the form alone decides nothing.
    const Device igb{"eth0", "igb", {}, {}, {}, {}};
    EXPECT_EQ(classify_names({"eth0-tx-0", "eth0-rx-1", "eth0-rx-2"}, {igb})[1].label.rx_queue, std::nullopt);
    const Device tg3{"eth0", "tg3", {}, {}, {}, {}};
    const auto pairs = classify_names({"eth0-0", "eth0-txrx-1", "eth0-txrx-2"}, {tg3});
    EXPECT_EQ(pairs[0].label.kind, control);
    EXPECT_EQ(pairs[2].label.rx_queue, 1U);
    EXPECT_EQ(pairs[2].label.tx_queue, 1U);
}

TEST(Classify, GveUpperHalfReceives) {
    const auto lines = classify_names({"gve-ntfy-blk0@pci:0000:00:04.0", "gve-ntfy-blk1@pci:0000:00:04.0",
                                       "gve-ntfy-blk2@pci:0000:00:04.0", "gve-ntfy-blk3@pci:0000:00:04.0",
                                       "gve-mgmnt@pci:0000:00:04.0"});
    EXPECT_EQ(lines[1].label.kind, tx);
    EXPECT_EQ(lines[1].label.queue, 1U);
    EXPECT_EQ(lines[2].label.kind, rx);
    EXPECT_EQ(lines[2].label.rx_queue, 0U);
    EXPECT_EQ(lines[3].label.rx_queue, 1U);
    EXPECT_EQ(lines[4].label.kind, control);
}

TEST(Classify, UnknownLabelsOfAListCarryDataAndTheBareNameDoesNot) {
    const Device nic{"eth0", "znic", "0000:41:00.0", {}, {}, {30, 31}};
    const auto lines = classify_names({"eth0", "z-0", "z-1"}, {nic});
    EXPECT_EQ(lines[0].label.kind, control);
    EXPECT_EQ(lines[1].label.kind, data_unknown);
    EXPECT_FALSE(lines[1].known);
    EXPECT_FALSE(lines[2].label.is_nic) << "it is not in the list";
}

TEST(Classify, LinesOfSubFunctionsAreNotThoseOfTheirFunction) {
    const Device parent{"eth0", "mlx5_core", "0000:41:00.0", {}, {}, {30, 31}};
    Device sub{"eth1", "mlx5_core.sf", "0000:41:00.0", {}, {}, {}};
    sub.sub_function = true;
    const auto lines =
        classify_names({"mlx5_comp0@pci:0000:41:00.0", "mlx5_sf_comp0@pci:0000:41:00.0"}, {parent, sub});
    EXPECT_EQ(lines[0].label.device, "eth0");
    EXPECT_EQ(lines[1].label.device, "eth1");
}

std::string shown(const Line& line) {
    const auto& label = line.label;
    if (label.kind == tx) return "tx" + std::to_string(label.tx_queue.value_or(*label.queue));
    if (label.kind == rx) return "rx" + std::to_string(label.rx_queue.value_or(*label.queue));
    return label.kind == control ? "control" : "?";
}

std::vector<std::string> shown(const std::vector<Line>& lines) {
    std::vector<std::string> texts;
    for (const auto& line : lines)
        texts.push_back(shown(line));
    return texts;
}

using Texts = std::vector<std::string>;

TEST(Classify, GveUnderItsOldDriverNameHasTheSameQueues) {
    const Device gvnic{"eth0", "gvnic", "0000:00:04.0", {}, {}, {}};
    EXPECT_EQ(shown(classify_names({"gve-ntfy-blk0@pci:0000:00:04.0", "gve-ntfy-blk1@pci:0000:00:04.0",
                                    "gve-mgmnt@pci:0000:00:04.0"},
                                   {gvnic})),
              (Texts{"tx0", "rx0", "control"}));
}

TEST(Classify, GveInterfacesWithOldLabelsAreTakenApart) {
    const std::string block = "eth%d-ntfy-block.";
    EXPECT_EQ(shown(classify_names({block + "0", block + "1", block + "2", block + "3", "eth%d-mgmnt",
                                    block + "0", block + "1", "eth%d-mgmnt"})),
              (Texts{"tx0", "tx1", "rx0", "rx1", "control", "tx0", "rx0", "control"}));
    EXPECT_EQ(shown(classify_names({block + "0", block + "1", block + "0", block + "1"})),
              (Texts{"tx0", "rx0", "tx0", "rx0"}));
}

TEST(Classify, GveExcerptKeepsItsHalves) {
    const std::string block = "eth%d-ntfy-block.";
    EXPECT_EQ(shown(classify_names({"other", block + "1", "other", block + "3", "eth%d-mgmnt"})),
              (Texts{"?", "tx1", "?", "rx1", "control"}))
        << "block 0 is missing, the management vector says how many there are";
    EXPECT_EQ(shown(classify_names({block + "0", block + "1", block + "2"})), (Texts{"tx0", "tx1", "rx0"}))
        << "the number of blocks is even";
}

TEST(Classify, VirtioIsANicByItsQueuesOrByTheDeviceTree) {
    const auto lines =
        classify_names({"virtio1-config", "virtio1-input.0", "virtio10-config", "virtio2-virtqueues"});
    EXPECT_EQ(lines[0].label.kind, control);
    EXPECT_FALSE(lines[2].label.is_nic);
    EXPECT_FALSE(lines[3].label.is_nic);
    const Device nic{"ens4", "virtio_net", "0000:00:04.0", "virtio2", {}, {}};
    const auto known = classify_names({"virtio2-config", "virtio2-virtqueues", "virtio20-config"}, {nic});
    EXPECT_EQ(known[0].label.kind, control);
    EXPECT_EQ(known[1].label.kind, txrx);
    EXPECT_EQ(known[1].label.device, "ens4");
    EXPECT_FALSE(known[2].label.is_nic);
}

TEST(Classify, PlainNumbersBeyondTheCpusAreUnknown) {
    std::vector<std::string> names;
    for (int index = 0; index < 18; ++index)
        names.push_back("eth0-" + std::to_string(index));
    EXPECT_EQ(classify_names(names)[0].label.kind, data_unknown);
    names.pop_back(); // bnx2 takes one vector more than there are CPUs
    EXPECT_EQ(classify_names(names)[0].label.kind, txrx);
    const Device r8125{"eth0", "r8125", {}, {}, {}, {}};
    EXPECT_EQ(classify_names({"eth0-0", "eth0-1"}, {r8125})[0].label.kind, data_unknown);
}

TEST(Classify, StmmacMacLineAloneIsAll) {
    EXPECT_EQ(classify_names({"eth0:mac"})[0].label.kind, txrx);
    EXPECT_EQ(classify_names({"eth0:mac", "eth0:rx-0"})[0].label.kind, control);
}

TEST(Classify, MailboxBeforeGivesTheFunction) {
    const auto lines = classify_names({"iavf-0000:b5:03.6:mbx", "iavf-net1-TxRx-0", "x", "iavf-net1-TxRx-0"});
    EXPECT_EQ(lines[1].label.pci, "0000:b5:03.6");
    EXPECT_EQ(lines[3].label.pci, "");
}

TEST(Classify, SharedLineGivesEachHandlerOnce) {
    auto table = parse_interrupts(
        "CPU0\n11: 1 IO-APIC 11-fasteoi uhci_hcd:usb1, eth0, eth1\n12: 1 GIC 3 Level eth2, eth2\n");
    table.labels = machine::builtin_labels();
    const auto lines = classify(table);
    ASSERT_EQ(lines.size(), 4U);
    EXPECT_EQ(lines[2].label.device, "eth1");
    EXPECT_TRUE(lines[2].shared);
    EXPECT_EQ(lines[3].label.device, "eth2");
    EXPECT_FALSE(lines[3].shared);
}

} // namespace
} // namespace affinityd::irq
