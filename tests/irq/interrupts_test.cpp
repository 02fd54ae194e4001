// SPDX-License-Identifier: Apache-2.0
#include "irq/reader.hpp"

#include <gtest/gtest.h>

namespace affinityd::irq {
namespace {

using Names = std::vector<std::string>;
using Counts = std::vector<std::uint64_t>;

const Irq& only(const InterruptTable& table) {
    EXPECT_EQ(table.irqs.size(), 1U);
    return table.irqs.at(0);
}

TEST(ParseInterrupts, HeaderNamesTheOnlineCpus) {
    const auto table = parse_interrupts(
        "           CPU0       CPU4       CPU1151\n  24:   1   2   3   PCI-MSI 16-edge   eth0\n");
    EXPECT_EQ(table.cpus, (std::vector<unsigned>{0, 4, 1151}));
    EXPECT_EQ(only(table).counts, (Counts{1, 2, 3}));
    EXPECT_EQ(only(table).actions, Names{"eth0"});
}

TEST(ParseInterrupts, WithoutHeaderTheColumnsAreCounted) {
    const auto table = parse_interrupts(
        "33:  1465  806  Hyper-V PCIe MSI 2701534461952-edge  mlx5_async0@pci:4ea0:00:02.0\n");
    EXPECT_EQ(table.cpus, (std::vector<unsigned>{0, 1}));
    EXPECT_EQ(only(table).chip, "Hyper-V PCIe MSI");
    EXPECT_EQ(only(table).actions, Names{"mlx5_async0@pci:4ea0:00:02.0"});
}

struct TailCase {
    const char* tail;
    const char* chip;
    Names actions;
};

class Tails : public testing::TestWithParam<TailCase> {};

TEST_P(Tails, ChipAndHandlersAreCut) {
    const auto table = parse_interrupts(std::string("  CPU0 CPU1\n 7: 1 2 ") + GetParam().tail + "\n");
    EXPECT_EQ(only(table).chip, GetParam().chip);
    EXPECT_EQ(only(table).actions, GetParam().actions);
    EXPECT_EQ(only(table).counts, (Counts{1, 2}));
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Tails,
    testing::Values(
        TailCase{"  IO-APIC   2-edge      timer", "IO-APIC", {"timer"}},
        TailCase{"  IO-APIC-edge      timer", "IO-APIC-edge", {"timer"}},
        TailCase{"  IO-APIC-edge    ", "IO-APIC-edge", {}}, TailCase{"", "", {}},
        TailCase{"    GICv3  27 Level     arch_timer", "GICv3", {"arch_timer"}},
        TailCase{"    GICv3  27     arch_timer", "GICv3", {"arch_timer"}},
        TailCase{"  ITS-MSI 65536 Edge      nvme0q0", "ITS-MSI", {"nvme0q0"}},
        TailCase{"  xen-dyn    -event     eth0-q0-tx", "xen-dyn", {"eth0-q0-tx"}},
        TailCase{"  xen-dyn-event     eth0", "xen-dyn-event", {"eth0"}},
        TailCase{"  PCI-MSI  mlx5_comp0@pci:0002:00:00.0", "PCI-MSI", {"mlx5_comp0@pci:0002:00:00.0"}},
        TailCase{"  BRCM STB PCIe MSI 524288 Edge      xhci_hcd", "BRCM STB PCIe MSI", {"xhci_hcd"}},
        TailCase{"  INT344B:00   3 Edge      ACPI:Event", "INT344B:00", {"ACPI:Event"}},
        TailCase{"  IR-PCI-MSI-edge eth0-q0", "IR-PCI-MSI-edge", {"eth0-q0"}},
        TailCase{"  GICv2 175 Level     PCIe PME, aerdrv", "GICv2", {"PCIe PME", "aerdrv"}},
        TailCase{"  IO-APIC  11-fasteoi   uhci_hcd:usb3, eth1", "IO-APIC", {"uhci_hcd:usb3", "eth1"}},
        TailCase{"  GICv3  66 Level    -fasteoi   eth0", "GICv3", {"eth0"}},
        TailCase{"  IR-IO-APIC   16    -fasteoi   eth0, oob", "IR-IO-APIC", {"eth0", "oob"}},
        TailCase{"  PCI-MSI 524288 oob-edge      eth0-TxRx-0", "PCI-MSI", {"eth0-TxRx-0"}},
        TailCase{"  GICv3  27 Level    oob  arch_timer", "GICv3", {"arch_timer"}},
        TailCase{"  PCI-MSI 5-edge      enp5s0f4 (queue 17)", "PCI-MSI", {"enp5s0f4 (queue 17)"}}));

TEST(ParseInterrupts, ChipOfADeviceDomainGivesTheFunction) {
    const auto table = parse_interrupts("CPU0\n157: 1 IR-PCI-MSIX-0000:01:00.0 1-edge enp1s0-TxRx-0\n");
    EXPECT_EQ(only(table).pci, "0000:01:00.0");
    EXPECT_EQ(only(parse_interrupts("CPU0\n157: 1 PCI-MSI-edge eth0\n")).pci, "");
}

TEST(ParseInterrupts, LinesWithLettersDoNotEndTheTable) {
    const auto table = parse_interrupts(
        "  CPU0 CPU1\nEXT: 5 6\nI/O: 7 8\n3: 1 2 PCI-MSI  a\nIPI0:2768808080 1  Rescheduling\nErr: 4\n");
    EXPECT_EQ(only(table).number, 3U);
    const std::vector<std::pair<std::string, std::uint64_t>> special = {
        {"EXT", 11}, {"I/O", 15}, {"IPI0", 2768808081}, {"Err", 4}};
    EXPECT_EQ(table.special, special);
}

TEST(ParseInterrupts, HostileTextIsPassedOver) {
    for (const char* text : {"", "\n\n", ":", "::::", "99999999999999: 1 2 x", "1 2: 3", " ...\n",
                             "CPU0 CPUx\n", "CPU99999999999\n", "\0:"})
        EXPECT_TRUE(parse_interrupts(text).irqs.empty()) << text;
    const auto table = parse_interrupts("CPU0\n5: 99999999999999999999999 x-edge y");
    EXPECT_EQ(only(table).counts, Counts{~0ULL});
}

TEST(ParseInterrupts, ShortLineHasFewerCounts) {
    const auto table = parse_interrupts("CPU0 CPU1 CPU2\n5: 1 2\n");
    EXPECT_EQ(only(table).counts, (Counts{1, 2}));
    EXPECT_EQ(table.find(5), &table.irqs[0]);
    EXPECT_EQ(table.find(6), nullptr);
}

} // namespace
} // namespace affinityd::irq
