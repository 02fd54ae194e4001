// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <gtest/gtest.h>

namespace affinityd {
namespace {

using namespace std::chrono_literals;

TEST(Duration, IsReadAsPeopleWriteIt) {
    EXPECT_EQ(parse_duration("0"), 0ms);
    EXPECT_EQ(parse_duration("30"), 30s);
    EXPECT_EQ(parse_duration("30s"), 30s);
    EXPECT_EQ(parse_duration("500ms"), 500ms);
    EXPECT_EQ(parse_duration("0.3s"), 300ms);
    EXPECT_EQ(parse_duration("1.5"), 1500ms);
    EXPECT_EQ(parse_duration("5m"), 5min);
    EXPECT_EQ(parse_duration("2h"), 2h);
    EXPECT_EQ(parse_duration("1d"), 24h);
    EXPECT_EQ(parse_duration("86400d"), 86400 * 24h);
    for (const char* wrong : {"", "s", "ms", "-1s", " 1s", ".", "nan", "infs", "1 s", "1S", "0x1s", "86401s",
                              "1e3", "99999999999999999999s"})
        EXPECT_FALSE(parse_duration(wrong)) << wrong;
}

TEST(Duration, IsWrittenInTheLargestUnitThatDividesIt) {
    for (const char* text : {"0", "500ms", "2s", "90s", "1m", "90m", "5h", "2d"})
        EXPECT_EQ(to_text(*parse_duration(text)), text);
    EXPECT_EQ(to_text(60'000ms), "1m");
    EXPECT_EQ(to_text(1500ms), "1500ms");
}

} // namespace
} // namespace affinityd
