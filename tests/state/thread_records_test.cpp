// SPDX-License-Identifier: Apache-2.0
#include "state/journal.hpp"
#include "state/thread_records.hpp"

#include <algorithm>
#include <ctime>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace affinityd::state {
namespace {

using machine::TaskMask;
using planner::UndoRecord;

TEST(SlotTable, FindsWhatIsThereAndNothingElseOverRandomChanges) {
    std::mt19937 random(11);
    SlotTable table;
    std::map<std::uint32_t, std::uint32_t> there; // slot -> hash
    for (int step = 0; step < 100000; ++step) {
        const auto slot = static_cast<std::uint32_t>(random() % 300);
        if (const auto at = there.find(slot); at != there.end()) {
            table.erase(at->second, slot);
            there.erase(at);
        } else {
            // A few hashes for many slots: probing has to get past others.
            const auto hash = there[slot] = static_cast<std::uint32_t>(random() % 40 * 0x10001);
            table.insert(hash, slot);
        }
        ASSERT_EQ(table.size(), there.size());
        const auto probe = static_cast<std::uint32_t>(random() % 300);
        const auto hash = there.contains(probe) ? there[probe] : 0x10001;
        const auto found = table.find(hash, [&](std::uint32_t at) { return at == probe; });
        ASSERT_EQ(found != SlotTable::none, there.contains(probe)) << step;
    }
}

TEST(ThreadRecords, AgreeWithAPlainModelOverRandomChanges) {
    std::mt19937 random(5);
    ThreadRecords records;
    std::map<TaskId, std::pair<int, UndoRecord>> model;
    for (int step = 0; step < 50000; ++step) {
        const int tid = static_cast<int>(random() % 200) + 1;
        const TaskId id{tid, 5};
        if (random() % 3 == 0) {
            ASSERT_EQ(records.erase(id), model.erase(id) > 0);
        } else {
            const auto any = [&](unsigned below) { return static_cast<unsigned>(random() % below); };
            const UndoRecord record{CpuSet::range(0, any(100)), CpuSet{any(70)}, CpuSet{any(5)},
                                    "policy " + std::to_string(any(9))};
            records.put({id, tid % 10, "a name that is longer than 15 bytes"}, record);
            model[id] = {tid % 10, record};
        }
        ASSERT_EQ(records.size(), model.size());
        const TaskId probe{static_cast<int>(random() % 200) + 1, 5};
        const auto found = records.find(probe);
        const auto expected = model.find(probe);
        ASSERT_EQ(found.has_value(), expected != model.end());
        if (found) {
            ASSERT_EQ(*found, expected->second.second);
        }
        if (step % 100 != 0) continue;
        std::size_t used = 0, processes = 0;
        for (std::size_t slot = 0; slot < records.slots(); ++slot)
            used += records.is_used(slot) ? 1 : 0;
        std::size_t walk = 0;
        while (const auto pid = records.next_process(walk)) {
            ++processes;
            auto threads = records.of(*pid);
            std::ranges::sort(threads);
            std::vector<TaskId> wanted;
            for (const auto& [one, what] : model)
                if (what.first == *pid) wanted.push_back(one);
            ASSERT_EQ(threads, wanted);
            const TaskId main{*pid, 5};
            const bool has_main = std::ranges::binary_search(wanted, main);
            ASSERT_EQ(records.main_of(*pid), has_main ? std::optional(main) : std::nullopt);
        }
        ASSERT_EQ(used, model.size());
        ASSERT_LE(processes, 10U);
    }
}

TEST(ThreadRecords, NamesAreCutAsTheKernelCutsThem) {
    ThreadRecords records;
    records.put({{1, 2}, 1, "kworker/0:1-events_power"}, {});
    EXPECT_EQ(std::get<TaskMask>(records.entry(0).subject).comm, "kworker/0:1-eve");
}

double cpu_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Cost {
    double erase = 0;  ///< CPU seconds for each thread
    double search = 0; ///< CPU seconds for each search of a mask that no thread has
};

/// One process of so many threads.
Cost cost_of(int threads) {
    constexpr int searches = 2000;
    const CpuSet online = CpuSet::range(0, 63);
    auto journal = *Journal::open("");
    const auto thread = [](int i) { return TaskMask{{i, 100}, 1, "worker"}; };
    for (int i = 1; i <= threads; ++i)
        EXPECT_TRUE(journal.remember(thread(i), online, CpuSet{static_cast<unsigned>(i % 32)}, "web"));
    Cost cost;
    double begin = cpu_seconds();
    for (int i = 0; i < searches; ++i)
        EXPECT_FALSE(journal.find_mask_source(1, CpuSet{40}, online));
    cost.search = (cpu_seconds() - begin) / searches;
    begin = cpu_seconds();
    for (int i = 1; i <= threads; ++i)
        EXPECT_TRUE(journal.forget(thread(i)));
    cost.erase = (cpu_seconds() - begin) / threads;
    return cost;
}

TEST(JournalCost, ToEraseOrSearchDoesNotGrowWithTheThreads) {
    // With a cost of O(threads), 20,000 of them cost 20 times as much each as 1,000.
    Cost few{1, 1}, many{1, 1};
    for (int round = 0; round < 3; ++round) {
        const auto one = cost_of(1000), other = cost_of(20000);
        few = {std::min(few.erase, one.erase), std::min(few.search, one.search)};
        many = {std::min(many.erase, other.erase), std::min(many.search, other.search)};
    }
    std::printf("of 1,000 threads: erase %.2f us, search %.2f us; of 20,000: erase %.2f us, search %.2f us\n",
                few.erase * 1e6, few.search * 1e6, many.erase * 1e6, many.search * 1e6);
    EXPECT_LT(many.erase, 6 * few.erase);
    EXPECT_LT(many.search, 6 * few.search);
}

} // namespace
} // namespace affinityd::state
