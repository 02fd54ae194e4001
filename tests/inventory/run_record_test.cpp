// SPDX-License-Identifier: Apache-2.0
#include "inventory/process_files.hpp"

#include <chrono>

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

namespace affinityd::inventory {
namespace {

TEST(RunRecord, CpuTimeAndPlaceAreFoundBehindAHostileName) {
    const std::string text =
        "123 (a) R 1 (b 9 9) S 7 123 123 0 -1 4194304 98 0 0 0 150 50 0 0 20 0 3 0 724926 3133440 409 "
        "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 5 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
    const auto record = parse_run_record(text, 100);
    ASSERT_TRUE(record);
    EXPECT_EQ(record->start_time, 724926U);
    EXPECT_EQ(record->cpu, 5);
    EXPECT_EQ(record->run_ns, 2'000'000'000U);
    EXPECT_FALSE(parse_run_record(text.substr(0, 100), 100)) << "a line that was cut";
    EXPECT_FALSE(parse_run_record("", 100));
}

TEST(RunRecord, SchedulerFiles) {
    EXPECT_FALSE(parse_sched_time(""));
    EXPECT_FALSE(parse_sched_time("x 1 2"));
    EXPECT_EQ(parse_migrations("cat (1, #threads: 1)\n---\nse.exec_start   :   1.5\nse.nr_migrations         "
                               "         :       194\nnr_switches : 7\n"),
              194U);
    EXPECT_EQ(parse_migrations("se.exec_start : 1\n"), std::nullopt);
    EXPECT_EQ(parse_migrations("\nse.nr_migrations"), std::nullopt);
}

TEST(RunRecord, OwnTimeGrowsWhileThisRuns) {
    const auto root = host::Root::open("/");
    ASSERT_TRUE(root);
    const auto before = read_run_record(*root, ::getpid(), ::gettid());
    ASSERT_TRUE(before);
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
         std::chrono::steady_clock::now() < end;) {
    }
    const auto after = read_run_record(*root, ::getpid(), ::gettid());
    ASSERT_TRUE(after);
    EXPECT_GT(after->run_ns, before->run_ns);
    EXPECT_EQ(after->start_time, before->start_time);
    cpu_set_t allowed;
    ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
    EXPECT_TRUE(CPU_ISSET(after->cpu, &allowed));
    EXPECT_FALSE(read_run_record(*root, ::getpid(), 0x7ffffffe));
}

} // namespace
} // namespace affinityd::inventory
