// SPDX-License-Identifier: Apache-2.0
#include "../support/no_descriptors_left.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/task.hpp"
#include "recorded.hpp"

#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace affinityd::inventory {
namespace {

using namespace test;

/// In one go.
Result<std::vector<KernelThread>> find_kernel_threads(const host::Root& root,
                                                      std::span<const KernelThread> known = {}) {
    KernelThreadScan scan(root, known);
    scan.step([] { return false; });
    return scan.take();
}

class KernelThreads : public testing::Test {
  protected:
    void SetUp() override {
        add_process(tree_, {.id = 2, .comm = "kthreadd", .flags = pf_kthread});
        add_process(tree_,
                    {.id = 20, .comm = "napi/eth0-8193", .parent = 2, .flags = pf_kthread, .start = 7});
        add_process(tree_, {.id = 21, .comm = "irq/24-eth0", .parent = 2, .flags = pf_kthread});
        add_process(tree_, {.id = 22, .comm = "kworker/0:1", .parent = 2, .flags = pf_kthread});
        add_process(tree_, {.id = 30, .comm = "napi/eth0-1"}); // a program that calls itself so
    }
    void children(const std::string& text) const { tree_.file("proc/2/task/2/children", text); }
    [[nodiscard]] std::vector<KernelThread> find(std::vector<KernelThread> known = {}) const {
        const auto found = find_kernel_threads(open_root(tree_), known);
        EXPECT_TRUE(found) << found.error().to_string();
        return found.value_or(std::vector<KernelThread>{});
    }
    const KernelThread napi_{{20, 7}, "napi/eth0-8193"};
    const KernelThread irq_{{21, 100}, "irq/24-eth0"};
    using Both = std::vector<KernelThread>;
    Tree tree_;
};

TEST_F(KernelThreads, ChildrenOfKthreaddAreFoundByName) {
    children("20 21 22 30 ");
    EXPECT_EQ(find(), (Both{napi_, irq_}));
}

TEST_F(KernelThreads, WithoutTheListAllProcessesAreLookedAt) { EXPECT_EQ(find(), (Both{napi_, irq_})); }

TEST_F(KernelThreads, KnownThreadThatTheListLacksIsConfirmedByItsOwnStat) {
    children("21 22 ");
    EXPECT_EQ(find(), Both{irq_}) << "the list alone loses it";
    EXPECT_EQ(find({napi_, irq_}), (Both{napi_, irq_}));
}

TEST_F(KernelThreads, KnownThreadThatHasEndedIsDropped) {
    children("21 22 ");
    EXPECT_EQ(find({{{40, 1}, "napi/eth1-8194"}}), Both{irq_});
    add_process(tree_, {.id = 40, .comm = "napi/eth1-8195", .flags = 0, .start = 9});
    EXPECT_EQ(find({{{40, 1}, "napi/eth1-8194"}}), Both{irq_}) << "a program has its number now";
    add_process(tree_, {.id = 40, .comm = "kworker/1:1", .flags = pf_kthread, .start = 9});
    EXPECT_EQ(find({{{40, 1}, "napi/eth1-8194"}}), Both{irq_}) << "another kernel thread has its number";
}

TEST_F(KernelThreads, NumberTakenByAnotherQueueThreadIsThatThread) {
    children("20 ");
    EXPECT_EQ(find({{{20, 1}, "napi/eth9-1"}}), Both{napi_});
}

TEST_F(KernelThreads, SlicesStopAfterEachThread) {
    children("20 21 22 ");
    const auto root = open_root(tree_);
    KernelThreadScan scan(root, {});
    int slices = 1;
    while (!scan.step([] { return true; }))
        ++slices;
    EXPECT_GE(slices, 4);
    EXPECT_EQ(scan.take().value(), (Both{napi_, irq_}));
}

TEST_F(KernelThreads, WithoutFreeDescriptorsNoneIsSaidToBeGone) {
    const auto root = host::Root::open().value();
    const NoDescriptorsLeft none;
    EXPECT_FALSE(find_kernel_threads(root, {{napi_}}));
}

TEST(KernelThreadsLive, AreWhatAllProcessesSay) {
    const auto root = host::Root::open().value();
    const auto found = find_kernel_threads(root);
    ASSERT_TRUE(found) << found.error().to_string();
    for (const auto& thread : *found) {
        EXPECT_GT(thread.id.tid, 2);
        EXPECT_TRUE(thread.comm.starts_with("napi/") || thread.comm.starts_with("irq/")) << thread.comm;
    }
}

} // namespace
} // namespace affinityd::inventory
