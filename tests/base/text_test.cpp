// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/task_id.hpp"
#include "base/text.hpp"

#include <cerrno>
#include <cstdint>

#include <gtest/gtest.h>

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

TEST(Utf8, WellFormedStaysAndEachOtherByteIsReplaced) {
    const std::string fffd = "\xef\xbf\xbd";
    for (const auto text :
         {""sv, "plain\n\x01\x7f"sv, "\xc2\x80\xdf\xbf"sv,
          "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"sv, "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"sv})
        EXPECT_EQ(valid_utf8(text), text);
    const std::pair<std::string_view, std::string> cases[] = {
        {"a\0b"sv, "a" + fffd + "b"}, // would end a C string
        {"\xff"sv, fffd},
        {"x\x80y"sv, "x" + fffd + "y"},         // a following byte that follows nothing
        {"\xc0\xaf"sv, fffd + fffd},            // "/" in two bytes
        {"\xe0\x9f\xbf"sv, fffd + fffd + fffd}, // too long a form
        {"\xed\xa0\x80"sv, fffd + fffd + fffd}, // a surrogate
        {"\xf0\x8f\xbf\xbf"sv, fffd + fffd + fffd + fffd},
        {"\xf4\x90\x80\x80"sv, fffd + fffd + fffd + fffd}, // beyond U+10FFFF
        {"\xc3"sv, fffd},                                  // cut short
        {"\xe2\x82"sv, fffd + fffd},
        {"\xf0\x9f\x98"sv, fffd + fffd + fffd},
        {"\xe2\x82\xc3\xa4"sv, fffd + fffd + "\xc3\xa4"}};
    for (const auto& [text, expected] : cases)
        EXPECT_EQ(valid_utf8(text), expected);
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
