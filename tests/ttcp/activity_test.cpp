// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/activity.hpp"
#include "host/root.hpp"
#include "irq/reader.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace affinityd::ttcp {
namespace {

using measure::LineReport;

TEST(CpuTimes, ColumnsAreReadAsSeconds) {
    const auto times = parse_cpu_times(
        "cpu  9 9 9 9\ncpu0 100 200 300 400 500 600 700 800 900 1000\ncpu12 1 2 3 4\nintr 5\n", 100);
    ASSERT_EQ(times.size(), 2U);
    EXPECT_EQ(times[0], (CpuTime{0, 1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(times[1], (CpuTime{12, 0.01, 0.02, 0.03, 0.04, 0, 0, 0, 0}));
    EXPECT_DOUBLE_EQ(times[0].busy(), 1 + 2 + 3 + 6 + 7 + 8);
}

TEST(CpuTimes, MalformedLinesAreSkipped) {
    for (const char* text : {"", "cpu", "cpuX 1 2 3 4", "cpu0", "cpu0 1 2 3", "cpu0 1 2 x 4", "cpu0 -1 2 3 4",
                             "cpu99999999 1 2 3 4"})
        EXPECT_TRUE(parse_cpu_times(text, 100).empty()) << text;
}

Activity activity(const char* stat, const char* interrupts) {
    return {0, parse_cpu_times(stat, 100), irq::parse_interrupts(interrupts)};
}

TEST(Between, DifferencesAreCountedByCpuAndLine) {
    const auto first =
        activity("cpu0 100 0 50 0 0 5 10\ncpu1 0 0 0 0 0 0 0\ncpu3 0 0 0 0\n",
                 "           CPU0       CPU1\n 24:   10   20  PCI-MSI 1-edge  virtio0-input.0\n"
                 " 25:    7    7  PCI-MSI 2-edge  gone\n 26:    9    9  PCI-MSI 2-edge  same\n");
    const auto last =
        activity("cpu0 150 50 70 0 0 6 40\ncpu1 0 0 0 100 0 0 0\ncpu2 9 9 9 9\n",
                 "           CPU0       CPU1\n 24:   15   20  PCI-MSI 1-edge  virtio0-input.0\n"
                 " 25:    9    9  PCI-MSI 2-edge  another\n 26:    1    12  PCI-MSI 2-edge  same\n");
    const auto cpus = cpus_between(first, last);
    ASSERT_EQ(cpus.size(), 2U); // CPU 2 came, CPU 3 went
    EXPECT_EQ(cpus[0].cpu, 0U);
    EXPECT_NEAR(cpus[0].user_seconds, 1.0, 1e-9);
    EXPECT_NEAR(cpus[0].system_seconds, 0.2, 1e-9);
    EXPECT_NEAR(cpus[0].irq_seconds, 0.01, 1e-9);
    EXPECT_NEAR(cpus[0].softirq_seconds, 0.3, 1e-9);
    EXPECT_EQ(cpus[0].interrupts, 5U);
    EXPECT_EQ(cpus[1].interrupts, 3U);
    const auto lines = lines_between(first, last);
    ASSERT_EQ(lines.size(), 2U); // 25 has another handler now: so its counter is another one
    EXPECT_EQ(lines[0], (LineReport{24, "virtio0-input.0", 0, 5}));
    EXPECT_EQ(lines[1], (LineReport{26, "same", 1, 3}));
    EXPECT_NEAR(busy_between(first, last).value(), (0.5 + 0.5 + 0.2 + 0.01 + 0.3) / (1.51 + 1), 1e-9);
    EXPECT_FALSE(busy_between(first, first));
}

TEST(Between, ColumnsAreMatchedByCpuNotByPosition) {
    const auto first =
        activity("cpu0 0 0 0 0\ncpu2 0 0 0 0\n",
                 "           CPU0       CPU1       CPU2\n 24:   1   2   3  PCI-MSI 1-edge  a\n");
    const auto last = activity("cpu0 0 0 0 0\ncpu2 0 0 0 0\n",
                               "           CPU0       CPU2\n 24:   1   10  PCI-MSI 1-edge  a\n");
    const auto lines = lines_between(first, last);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0].cpu, 2U);
    EXPECT_EQ(lines[0].count, 7U);
}

class Frequency : public ::testing::Test {
  protected:
    Frequency() {
        std::string name = (std::filesystem::temp_directory_path() / "frequency-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
    }
    ~Frequency() override { std::filesystem::remove_all(folder_); }
    void put(const std::string& path, const std::string& text) const {
        const auto file = std::filesystem::path(folder_) / path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    [[nodiscard]] std::optional<double> read() const { return read_frequency(*host::Root::open(folder_)); }
    std::string folder_;
};

TEST_F(Frequency, CpufreqIsPreferredToCpuinfoAndWithoutBothThereIsNoValue) {
    EXPECT_FALSE(read());
    put("proc/cpuinfo", "processor : 0\ncpu MHz\t\t: 2000.5\n\nprocessor : 1\ncpu MHz\t\t: 3000.5\nprocessor "
                        ": 2\ncpu MHz : junk\n");
    EXPECT_DOUBLE_EQ(read().value(), 2500.5e6);
    put("sys/devices/system/cpu/online", "0-1\n");
    put("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "1500000\n");
    EXPECT_DOUBLE_EQ(read().value(), 1.5e9);
}

} // namespace
} // namespace affinityd::ttcp
