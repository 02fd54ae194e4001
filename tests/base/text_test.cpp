// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "base/task_id.hpp"
#include "base/text.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>

namespace affinityd {
namespace {

using namespace std::string_view_literals;
using Parts = std::vector<std::string_view>;

TEST(Text, Trim) {
    EXPECT_EQ(trim_text(" \t a b \r\n"), "a b");
    EXPECT_EQ(trim_text("value\n\0"sv), "value");
    EXPECT_EQ(trim_text(""), "");
    EXPECT_EQ(trim_text(" \n\0 "sv), "");
}

TEST(Text, Split) {
    EXPECT_EQ(split("a,b", ','), (Parts{"a", "b"}));
    EXPECT_EQ(split(",a,,", ','), (Parts{"", "a", "", ""}));
    EXPECT_EQ(split("", ','), (Parts{""}));
    EXPECT_EQ(split_words("  a\t b  c "), (Parts{"a", "b", "c"}));
    EXPECT_EQ(split_words(" \t"), Parts{});
}

TEST(Text, NumbersAreWholeAndInRange) {
    EXPECT_EQ(parse_number<int>("42"), 42);
    EXPECT_EQ(parse_number<int>("-1"), -1);
    EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"), 18446744073709551615ULL);
    for (const auto text : {""sv, " 1"sv, "1 "sv, "+1"sv, "0x1"sv, "1.0"sv, "2147483648"sv, "1\0"sv, "-"sv})
        EXPECT_FALSE(parse_number<int>(text)) << text;
    EXPECT_FALSE(parse_number<unsigned>("-1"));
    EXPECT_FALSE(parse_number<std::uint8_t>("256"));
}

TEST(Error, SaysWhatIsKnownAndNoMore) {
    EXPECT_EQ((Error{"cannot open", "/x", ENOENT}).to_string(), "/x: cannot open: No such file or directory");
    EXPECT_EQ((Error{"cannot open"}).to_string(), "cannot open");
    EXPECT_EQ((Error{"bad value", "file:3:4"}).to_string(), "file:3:4: bad value");
}

TEST(TaskId, ARecycledNumberIsAnother) {
    EXPECT_NE((TaskId{7, 100}), (TaskId{7, 200}));
    EXPECT_EQ((TaskId{7, 100}), (TaskId{7, 100}));
    EXPECT_NE(std::hash<TaskId>{}(TaskId{7, 100}), std::hash<TaskId>{}(TaskId{7, 200}));
}

} // namespace
} // namespace affinityd
