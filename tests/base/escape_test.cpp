// SPDX-License-Identifier: Apache-2.0
#include "base/escape.hpp"

#include <utility>

#include <gtest/gtest.h>

namespace affinityd {
namespace {

using Case = std::pair<std::string_view, std::string_view>;

TEST(Escaped, WritesWhatATerminalWouldActUponAsItsNumber) {
    const Case cases[] = {
        {"plain € ü 😀 \\ \" %s {}", "plain € ü 😀 \\ \" %s {}"},
        {"", ""},
        {"\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"},
        {"a\tb\r\nc", "a\\tb\\r\\nc"},
        {std::string_view("a\0b", 3), "a\\x00b"},
        {"\x7f", "\\x7f"},
        {"\xc2\x80|\xc2\x9b|\xc2\x9f|\xc2\xa0", "\\u0080|\\u009b|\\u009f|\xc2\xa0"},
        {"\u2027\u2028\u2029\u202a\u202e\u202f", "\u2027\\u2028\\u2029\\u202a\\u202e\u202f"},
        {"\u2065\u2066\u2067\u2068\u2069\u206a", "\u2065\\u2066\\u2067\\u2068\\u2069\u206a"},
        {"\u061c\u200d\u200e\u200f\ufeff", "\\u061c\u200d\\u200e\\u200f\\ufeff"},
        {"\xef\xbf\xbe\xef\xbf\xbf", "\\ufffe\\uffff"},
        {"\xff\xc3", "\\xff\\xc3"},
        {"\xc0\xaf\xed\xa0\x80", "\\xc0\\xaf\\xed\\xa0\\x80"},
        {"\x9b"
         "31m",
         "\\x9b31m"},
    };
    for (const auto& [text, expected] : cases) {
        EXPECT_EQ(escaped(text), expected);
        EXPECT_EQ(escaped(escaped(text)), expected) << "twice is once";
    }
}

TEST(EscapedLines, KeepsLineEndsAndNothingElse) {
    EXPECT_EQ(escaped_lines("a\nb\r\x1b\u2028\n"), "a\nb\\r\\x1b\\u2028\n");
}

TEST(EscapedJson, KeepsTheValueAndHidesWhatActs) {
    EXPECT_EQ(escaped_json("{\"a\": \"x\"}\n"), "{\"a\": \"x\"}\n");
    EXPECT_EQ(escaped_json("[\"\x7f\u0085\u202e\u2066\u2028ü😀\"]"),
              "[\"\\u007f\\u0085\\u202e\\u2066\\u2028ü😀\"]");
}

} // namespace
} // namespace affinityd
