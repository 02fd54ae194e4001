// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/activity.hpp"
#include "host/root.hpp"

#include <gtest/gtest.h>

namespace affinityd::ttcp {
namespace {

TEST(Busy, ReasonNamesWhatIsBusy) {
    EXPECT_EQ(why_busy({0.1, "", {}}, 0.2), "");
    EXPECT_EQ(why_busy({{}, "", {}}, 0.2), ""); // an unknown figure does not forbid a run
    EXPECT_NE(why_busy({0.5, "", {}}, 0.2).find("the machine is busy: 50 %"), std::string::npos);
    EXPECT_NE(why_busy({0.1, "eth7", 0.9}, 0.2).find("eth7 is busy: 90 %"), std::string::npos);
    EXPECT_EQ(why_busy({0.2, "eth7", 0.2}, 0.2), "");
}

TEST(Busy, IdleLoopbackHasNoNic) {
    const auto root = host::Root::open().value();
    const auto alone = look_around(root, std::nullopt, 0.05);
    EXPECT_EQ(alone.nic, "");
    EXPECT_FALSE(alone.link);
    EXPECT_LE(alone.cpus.value_or(0), 1.0);
    EXPECT_EQ(look_around(root, Address{"127.0.0.1", "9"}, 0.01).nic, ""); // loopback is no NIC
}

} // namespace
} // namespace affinityd::ttcp
