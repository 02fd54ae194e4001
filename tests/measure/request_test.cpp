// SPDX-License-Identifier: Apache-2.0
#include "measure/request.hpp"

#include <gtest/gtest.h>

namespace affinityd::measure {
namespace {

using Words = std::vector<std::string>;

TEST(CommandLine, LoopbackWithoutTarget) {
    EXPECT_EQ(command_line("/p/ttcp", {}), (Words{"/p/ttcp", "--loopback", "--seconds", "5", "--json"}));
}

TEST(CommandLine, EveryBoundIsPassedOn) {
    const Request request{"peer:5001", std::chrono::seconds(2), 1000, 30};
    EXPECT_EQ(command_line("ttcp", request), (Words{"ttcp", "--target", "peer:5001", "--seconds", "2",
                                                    "--json", "--bytes", "1000", "--idle-only", "30"}));
}

TEST(TimeLimit, LeavesRoomForStartAndReport) {
    EXPECT_EQ(time_limit({"", std::chrono::seconds(5), 0, {}}), std::chrono::seconds(30));
}

} // namespace
} // namespace affinityd::measure
