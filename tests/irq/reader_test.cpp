// SPDX-License-Identifier: Apache-2.0
#include "host/root.hpp"
#include "irq/reader.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace affinityd::irq {
namespace {

namespace fs = std::filesystem;

class ReadInterrupts : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "affinityd-irq-XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        top_ = name;
    }
    void TearDown() override { fs::remove_all(top_); }

    void put(const std::string& path, std::string_view text) const {
        fs::create_directories((top_ / path).parent_path());
        std::ofstream(top_ / path) << text;
    }
    [[nodiscard]] Result<InterruptTable> read() const {
        auto root = host::Root::open(top_.string());
        if (!root) return std::unexpected(root.error());
        return read_interrupts(*root);
    }

    fs::path top_;
};

TEST_F(ReadInterrupts, TableAloneIsEnough) {
    put("proc/interrupts", "CPU0\n24: 1 PCI-MSI 5-edge eth0\n");
    const auto table = read();
    ASSERT_TRUE(table) << table.error().to_string();
    ASSERT_EQ(table->irqs.size(), 1U);
    EXPECT_EQ(table->irqs[0].requested, std::nullopt);
    EXPECT_TRUE(table->irqs[0].writable);
}

TEST_F(ReadInterrupts, AffinityFilesAreAdded) {
    put("proc/interrupts", "CPU0 CPU1\n24: 1 2 PCI-MSI 5-edge eth0\n25: 1 2 PCI-MSI 6-edge eth1\n");
    put("proc/irq/24/smp_affinity_list", "0-1\n");
    put("proc/irq/24/smp_affinity", "1\n");
    put("proc/irq/24/effective_affinity_list", "1\n");
    put("proc/irq/24/affinity_hint", "00000000,00000002\n");
    put("proc/irq/25/smp_affinity", "00000001,00000000\n"); // kernels without the list form
    put("proc/irq/25/effective_affinity_list", "\n");       // not started yet
    put("proc/irq/25/affinity_hint", "0\n");
    const auto table = read();
    ASSERT_TRUE(table);
    EXPECT_EQ(table->find(24)->requested, CpuSet({0, 1}));
    EXPECT_EQ(table->find(24)->effective, CpuSet({1}));
    EXPECT_EQ(table->find(24)->hint, CpuSet({1}));
    EXPECT_EQ(table->find(25)->requested, CpuSet({32}));
    EXPECT_EQ(table->find(25)->effective, CpuSet());
    EXPECT_EQ(table->find(25)->hint, std::nullopt);
}

TEST_F(ReadInterrupts, HandlersComeFromDirectoriesWhereTheTableIsEmpty) {
    put("proc/interrupts", "");
    put("proc/irq/24/smp_affinity_list", "3\n");
    put("proc/irq/24/spurious", "count 0\n");
    fs::create_directories(top_ / "proc/irq/24/eth0-TxRx-0");
    put("proc/irq/25/smp_affinity_list", "3\n"); // allocated, without a handler
    const auto table = read();
    ASSERT_TRUE(table);
    ASSERT_EQ(table->irqs.size(), 1U);
    EXPECT_EQ(table->irqs[0].actions, std::vector<std::string>{"eth0-TxRx-0"});
    EXPECT_EQ(table->irqs[0].requested, CpuSet({3}));
}

TEST_F(ReadInterrupts, RecordingWithoutATableIsEmpty) {
    const auto table = read();
    ASSERT_TRUE(table);
    EXPECT_TRUE(table->irqs.empty());
}

TEST_F(ReadInterrupts, UnreadableTableIsAnError) {
    fs::create_directories(top_ / "proc/interrupts");
    EXPECT_FALSE(read());
}

/// A table of several reads, whose last line has no end, and the files of each line.
TEST_F(ReadInterrupts, InPartsIsTheSameAsAtOnce) {
    constexpr unsigned lines = 600;
    std::string text = "CPU0 CPU1\n";
    for (unsigned line = 0; line < lines; ++line) {
        const auto number = std::to_string(100 + line);
        text += number + ": " + std::to_string(line) + " 7 PCI-MSI " + number + "-edge eth0-TxRx-" +
                std::to_string(line) + (line + 1 < lines ? "\n" : "");
        put("proc/irq/" + number + "/smp_affinity_list", std::to_string(line % 2) + "\n");
    }
    ASSERT_GT(text.size(), 1U << 14);
    put("proc/interrupts", text);
    const auto root = host::Root::open(top_.string());
    ASSERT_TRUE(root);
    InterruptReader reader(*root);
    unsigned parts = 1;
    while (true) {
        const auto done = reader.step([] { return true; });
        ASSERT_TRUE(done) << done.error().to_string();
        if (*done) break;
        ++parts;
    }
    EXPECT_GT(parts, lines) << "it looks at the clock after the files of each line";
    const auto table = reader.take();
    ASSERT_EQ(table.irqs.size(), lines);
    for (unsigned line = 0; line < lines; ++line) {
        const auto& irq = table.irqs[line];
        EXPECT_EQ(irq.number, 100 + line);
        EXPECT_EQ(irq.counts, (std::vector<std::uint64_t>{line, 7}));
        EXPECT_EQ(irq.actions, std::vector<std::string>{"eth0-TxRx-" + std::to_string(line)});
        EXPECT_EQ(irq.requested, CpuSet({line % 2}));
    }
}

TEST_F(ReadInterrupts, AFifoInItsPlaceHoldsNothingUp) {
    fs::create_directories(top_ / "proc");
    ASSERT_EQ(::mkfifo((top_ / "proc/interrupts").c_str(), 0600), 0);
    const auto table = read();
    ASSERT_TRUE(table);
    EXPECT_TRUE(table->irqs.empty());
}

TEST(ReadInterruptsLive, ThisMachineHasATable) {
    const auto root = host::Root::open("/");
    ASSERT_TRUE(root);
    const auto table = read_interrupts(*root);
    ASSERT_TRUE(table);
    EXPECT_FALSE(table->cpus.empty());
    EXPECT_FALSE(table->irqs.empty() && table->special.empty());
}

} // namespace
} // namespace affinityd::irq
