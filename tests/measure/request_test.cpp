// SPDX-License-Identifier: Apache-2.0
#include "measure/program.hpp"

#include <gtest/gtest.h>

namespace affinityd::measure {
namespace {

using Words = std::vector<std::string>;

TEST(Options, LoopbackWithoutTarget) {
    EXPECT_EQ(options_of({}), (Words{"--loopback", "--seconds", "5", "--json"}));
}

TEST(Options, EveryBoundIsPassedOn) {
    const Request request{"peer:5001", std::chrono::seconds(2), 1000, 30};
    EXPECT_EQ(options_of(request), (Words{"--target", "peer:5001", "--seconds", "2", "--json", "--bytes",
                                          "1000", "--idle-only", "30"}));
}

TEST(RequestLine, IsReadAsItWasWritten) {
    const Words words{"--target", "a \"b\"\nc:1", ""};
    const auto line = to_line(words);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_EQ(from_line(line), words);
}

TEST(RequestLine, WhatIsNoListOfOptionsIsAnError) {
    for (const char* line : {"", "--loopback", "{}", "[1]", "[[\"a\"]]", "[\"a\"", "[\"a\"] []"})
        EXPECT_FALSE(from_line(line)) << line;
}

TEST(TimeLimit, LeavesRoomForStartAndReport) {
    EXPECT_EQ(time_limit({"", std::chrono::seconds(5), 0, {}}), std::chrono::seconds(30));
}

} // namespace
} // namespace affinityd::measure
