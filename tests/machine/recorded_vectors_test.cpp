// SPDX-License-Identifier: Apache-2.0
// Published interrupt tables of drivers that give several lines of one interface the same label, or might.
#include "irq/reader.hpp"
#include "machine/machine.hpp"
#include "machine/subject.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unordered_set>

#include <gtest/gtest.h>

namespace affinityd::machine {
namespace {

std::string recording(const std::string& name) {
    const char* folder = std::getenv("AFFINITYD_INTERRUPTS");
    if (folder == nullptr) folder = std::getenv("AFFINITYD_INTERRUPTS_DEFAULT");
    std::ostringstream text;
    text << std::ifstream(std::filesystem::path(folder == nullptr ? "" : folder) / name, std::ios::binary)
                .rdbuf();
    return text.str();
}

struct Case {
    const char* file;
    const char* driver;
    const char* device;
    std::size_t vectors;
    unsigned largest_ordinal;
};

class RecordedVectors : public testing::TestWithParam<Case> {};

TEST_P(RecordedVectors, EachIsASubjectOfItsOwn) {
    const auto& expected = GetParam();
    Machine machine;
    machine.irqs = irq::parse_interrupts(recording(expected.file));
    ASSERT_FALSE(machine.irqs.irqs.empty()) << "is the recording there?";
    netdev::Nic nic;
    nic.name = "eth0";
    nic.driver = expected.driver;
    nic.device = expected.device;
    machine.nics.push_back(nic);
    link_vectors(machine);
    const auto vectors = machine.vectors_of("eth0");
    EXPECT_EQ(vectors.size(), expected.vectors);
    std::unordered_set<Subject> subjects;
    unsigned largest = 0;
    for (const auto& vector : vectors) {
        EXPECT_TRUE(subjects.insert(IrqMask{nic.device, vector.label, vector.ordinal, vector.irq}).second)
            << "IRQ " << vector.irq << " (" << vector.label << ") is taken for another";
        largest = std::max(largest, vector.ordinal);
    }
    EXPECT_EQ(largest, expected.largest_ordinal);
}

INSTANTIATE_TEST_SUITE_P(
    Drivers, RecordedVectors,
    testing::Values(
        Case{"openwrt-rpi4-bcmgenet.txt", "bcmgenet", "devices/platform/scb/fd580000.ethernet", 2, 1},
        Case{"openwrt-gl-mt6000.txt", "mtk_soc_eth", "devices/platform/soc/15100000.ethernet", 2, 1},
        Case{"stmmac-elkhartlake.txt", "stmmac", "devices/pci0000:00/0000:00:1d.1", 17, 0},
        Case{"stmmac-s32g.txt", "stmmac", "devices/platform/soc/4033c000.ethernet", 11, 0}),
    [](const auto& one) {
        std::string name = one.param.file;
        std::ranges::replace_if(
            name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
        return name;
    });

} // namespace
} // namespace affinityd::machine
