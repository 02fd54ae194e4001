// SPDX-License-Identifier: Apache-2.0
#include "host/scheduler.hpp"

#include <cerrno>

#include <gtest/gtest.h>
#include <unistd.h>

namespace affinityd::host {
namespace {

TEST(Scheduler, AMaskIsSetAndReadBackAndPutBack) {
    const auto before = get_affinity(0);
    ASSERT_TRUE(before);
    ASSERT_FALSE(before->empty());
    const CpuSet one{before->last()};
    ASSERT_EQ(set_affinity(0, one), 0);
    EXPECT_EQ(get_affinity(0), one);
    EXPECT_EQ(get_affinity(::gettid()), one);
    ASSERT_EQ(set_affinity(0, *before), 0);
    EXPECT_EQ(get_affinity(0), *before);
}

TEST(Scheduler, CpusTheMachineLacksAreCutAway) {
    const auto before = get_affinity(0);
    ASSERT_TRUE(before);
    ASSERT_EQ(set_affinity(0, *before | CpuSet::range(5000, 9000)), 0) << "longer than the kernel's own mask";
    EXPECT_EQ(get_affinity(0), *before);
    EXPECT_EQ(set_affinity(0, CpuSet{9000}), EINVAL);
    EXPECT_EQ(set_affinity(0, CpuSet{}), EINVAL);
    EXPECT_EQ(get_affinity(0), *before);
}

TEST(Scheduler, ATaskThatIsGone) {
    constexpr int beyond_any_pid = 0x7fffffff;
    EXPECT_EQ(set_affinity(beyond_any_pid, CpuSet{0}), ESRCH);
    const auto mask = get_affinity(beyond_any_pid);
    ASSERT_FALSE(mask);
    EXPECT_EQ(mask.error(), ESRCH);
}

} // namespace
} // namespace affinityd::host
