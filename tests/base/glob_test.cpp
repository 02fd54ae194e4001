// SPDX-License-Identifier: Apache-2.0
#include "base/glob.hpp"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace affinityd {
namespace {

struct GlobCase {
    const char* pattern;
    const char* text;
    bool matches;
};

class Globs : public testing::TestWithParam<GlobCase> {};

TEST_P(Globs, Match) {
    EXPECT_EQ(glob_match(GetParam().pattern, GetParam().text), GetParam().matches)
        << GetParam().pattern << " on " << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Table, Globs,
    testing::Values(
        // clang-format off
        GlobCase{"", "", true}, GlobCase{"", "a", false}, GlobCase{"*", "", true}, GlobCase{"**", "anything", true},
        GlobCase{"nginx", "nginx", true}, GlobCase{"nginx", "nginx2", false}, GlobCase{"nginx", "Nginx", false},
        GlobCase{"eth*", "eth10", true}, GlobCase{"eth?", "eth10", false}, GlobCase{"eth1", "eth10", false},
        GlobCase{"*worker*", "nginx: worker process", true}, GlobCase{"*worker", "nginx: worker process", false},
        GlobCase{"/usr/*/nginx", "/usr/local/sbin/nginx", true},
        GlobCase{"a*b*c", "aXbYbZc", true}, GlobCase{"a*b*c", "aXcYb", false},
        GlobCase{"[a-c]x", "bx", true}, GlobCase{"[a-c]x", "dx", false}, GlobCase{"[!a-c]x", "dx", true}, GlobCase{"[!a-c]x", "ax", false},
        GlobCase{"[^a]x", "bx", true}, GlobCase{"[]]x", "]x", true}, GlobCase{"[!]]x", "]x", false}, GlobCase{"[a-]", "-", true},
        GlobCase{"[abc", "[abc", true}, GlobCase{"[abc", "a", false}, GlobCase{"[", "[", true}, GlobCase{"[!", "[!", true}, GlobCase{"[]", "[]", true},
        GlobCase{"\\*", "*", true}, GlobCase{"\\*", "x", false}, GlobCase{"\\[a]", "[a]", true}, GlobCase{"a\\", "a\\", true}, GlobCase{"\\", "x", false},
        GlobCase{"*a", "aaaa", true}, GlobCase{"*ab", "aaab", true}, GlobCase{"?", "", false}, GlobCase{"??", "ab", true},
        GlobCase{"[\x80-\xff]", "\xe4", true}, GlobCase{"[a-\xff]", "\xc3", true}, GlobCase{"*)", "a (b) c)", true}));
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
