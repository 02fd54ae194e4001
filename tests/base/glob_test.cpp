// SPDX-License-Identifier: Apache-2.0
#include "base/glob.hpp"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace affinityd {
namespace {

struct Case {
    const char* pattern;
    const char* text;
    bool matches;
};

class Globs : public testing::TestWithParam<Case> {};

TEST_P(Globs, Match) {
    EXPECT_EQ(glob_match(GetParam().pattern, GetParam().text), GetParam().matches)
        << GetParam().pattern << " on " << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Table, Globs,
    testing::Values(
        // clang-format off
        Case{"", "", true}, Case{"", "a", false}, Case{"*", "", true}, Case{"**", "anything", true},
        Case{"nginx", "nginx", true}, Case{"nginx", "nginx2", false}, Case{"nginx", "Nginx", false},
        Case{"eth*", "eth10", true}, Case{"eth?", "eth10", false}, Case{"eth1", "eth10", false},
        Case{"*worker*", "nginx: worker process", true}, Case{"*worker", "nginx: worker process", false},
        Case{"/usr/*/nginx", "/usr/local/sbin/nginx", true},
        Case{"a*b*c", "aXbYbZc", true}, Case{"a*b*c", "aXcYb", false},
        Case{"[a-c]x", "bx", true}, Case{"[a-c]x", "dx", false}, Case{"[!a-c]x", "dx", true}, Case{"[!a-c]x", "ax", false},
        Case{"[^a]x", "bx", true}, Case{"[]]x", "]x", true}, Case{"[!]]x", "]x", false}, Case{"[a-]", "-", true},
        Case{"[abc", "[abc", true}, Case{"[abc", "a", false}, Case{"[", "[", true}, Case{"[!", "[!", true}, Case{"[]", "[]", true},
        Case{"\\*", "*", true}, Case{"\\*", "x", false}, Case{"\\[a]", "[a]", true}, Case{"a\\", "a\\", true}, Case{"\\", "x", false},
        Case{"*a", "aaaa", true}, Case{"*ab", "aaab", true}, Case{"?", "", false}, Case{"??", "ab", true},
        Case{"[\x80-\xff]", "\xe4", true}, Case{"[a-\xff]", "\xc3", true}, Case{"*)", "a (b) c)", true}));
// clang-format on

TEST(Glob, StaysLinearOnHostilePatterns) {
    std::string pattern;
    for (int i = 0; i < 200; ++i)
        pattern += "a*";
    pattern += "b";
    const std::string text(4000, 'a');
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(glob_match(pattern, text));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(Glob, LiteralsAreKnown) {
    EXPECT_TRUE(is_literal_glob("nginx: worker"));
    EXPECT_TRUE(is_literal_glob(""));
    for (const char* pattern : {"a*", "a?", "[a]", "a\\b"})
        EXPECT_FALSE(is_literal_glob(pattern)) << pattern;
}

TEST(Glob, TheShortestMatchCountsElements) {
    EXPECT_EQ(shortest_match(""), 0U);
    EXPECT_EQ(shortest_match("C2 CompilerThread*"), 17U);
    EXPECT_EQ(shortest_match("*a?[b-d]\\**["), 5U) << "an unclosed bracket is one byte";
    EXPECT_EQ(shortest_match("[!abc]*[]]"), 2U);
}

TEST(Glob, ABeginningStandsForSoManyBytes) {
    EXPECT_EQ(glob_beginning("C2 CompilerThread*", 15), "C2 CompilerThre");
    EXPECT_EQ(glob_beginning("[a-z]\\??x*", 3), "[a-z]\\??");
    EXPECT_EQ(glob_beginning("ab*cdef", 3), "") << "what a '*' stands for is not known";
    EXPECT_EQ(glob_beginning("ab", 3), "");
}

} // namespace
} // namespace affinityd
