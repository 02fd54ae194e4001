// SPDX-License-Identifier: Apache-2.0
#include "policy/pattern.hpp"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace {

using affinityd::policy::FilePatterns;
using affinityd::policy::Pattern;
using namespace std::string_literals;

bool matches(std::string_view pattern, std::string_view text) {
    const auto parsed = Pattern::parse(pattern);
    return parsed.has_value() && parsed->matches(text);
}

TEST(Pattern, GlobsHoldForTheWholeText) {
    EXPECT_TRUE(matches("redis", "redis"));
    EXPECT_FALSE(matches("redis", "redis-server"));
    EXPECT_FALSE(matches("redis", "xredis"));
    EXPECT_TRUE(matches("redis*", "redis-server"));
    EXPECT_TRUE(matches("/usr/bin/*", "/usr/bin/a/b"));
    EXPECT_TRUE(matches("?", "/"));
}

TEST(Pattern, RegularExpressionsAreFoundAnywhere) {
    EXPECT_TRUE(matches("/edis/", "redis-server"));
    EXPECT_FALSE(matches("/^edis/", "redis-server"));
    EXPECT_TRUE(matches("/^redis$/", "redis"));
    EXPECT_TRUE(matches("/a.b/", "a\nb")); // a line end in a name does not get past a rule
    EXPECT_TRUE(matches("/^a.+b$/", "a\xff\xfe"
                                    "b"));
    EXPECT_TRUE(matches("/^a.b$/", "a\0b"s));
}

TEST(Pattern, OnlySlashesAtBothEndsMakeARegularExpression) {
    EXPECT_TRUE(matches("/usr/sbin/nginx", "/usr/sbin/nginx"));
    EXPECT_TRUE(matches("/", "/"));
    EXPECT_TRUE(matches("//", "//"));
    EXPECT_FALSE(matches("/a", "a"));
    EXPECT_TRUE(matches("/a/", "bab"));
}

TEST(Pattern, KnowsLiterals) {
    for (const auto text : {"redis", "/usr/sbin/nginx", "a b"})
        EXPECT_TRUE(Pattern::parse(text)->is_literal()) << text;
    for (const auto text : {"redis*", "a?", "[ab]", "a\\b", "/redis/"})
        EXPECT_FALSE(Pattern::parse(text)->is_literal()) << text;
}

TEST(Pattern, SaysWhatIsWrong) {
    EXPECT_FALSE(Pattern::parse("").has_value());
    EXPECT_FALSE(Pattern::parse(std::string(1025, 'a')).has_value());
    EXPECT_TRUE(Pattern::parse(std::string(1024, 'a')).has_value());
    const auto wrong = Pattern::parse("/(/");
    ASSERT_FALSE(wrong.has_value());
    EXPECT_EQ(wrong.error().message, "the regular expression is wrong: missing ): (");
    EXPECT_FALSE(Pattern::parse("/(a{900}){900}/").has_value());
}

// The library takes more than a millisecond to compile these.
TEST(Pattern, ExpressionsThatBecomeLargeProgramsAreRefused) {
    EXPECT_FALSE(Pattern::parse("/(x+x+)+y{999}(ab|cd){999}/").has_value());
    EXPECT_TRUE(Pattern::parse("/" + std::string(1022, 'a') + "/").has_value());
    EXPECT_TRUE(Pattern::parse("/^[a-z]{1,64}(-[0-9a-f]{8,40})?\\.service$/").has_value());
}

TEST(Pattern, AFileHasABoundedNumberOfExpressions) {
    FilePatterns patterns;
    for (std::size_t at = 0; at < FilePatterns::most_expressions; ++at)
        EXPECT_TRUE(patterns.parse("/a" + std::to_string(at) + "/").has_value());
    const auto excess = patterns.parse("/b/");
    ASSERT_FALSE(excess.has_value());
    EXPECT_EQ(excess.error().message, "more than 256 different regular expressions in one file");
    EXPECT_TRUE(patterns.parse("/a7/")->matches("xa7y")) << "known";
    EXPECT_TRUE(patterns.parse("b*")->matches("b")) << "a glob takes nothing to compile";
}

// A backtracking matcher needs hours for either.
TEST(Pattern, TakesLinearTime) {
    const std::string text(20'000, 'a');
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(matches("/(a*)*(a*)*(a*)*b$/", text));
    EXPECT_FALSE(matches("*a*a*a*a*a*a*b", text));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(Pattern, OfANameMatchesWhatTheKernelKeeps) {
    const auto java = Pattern::parse("C2 CompilerThread*")->of_name();
    EXPECT_TRUE(java.matches("C2 CompilerThre")) << "TASK_COMM_LEN is 16, with the byte at the end";
    EXPECT_TRUE(java.matches("C2 CompilerThread0")) << "some kernel threads have longer names";
    EXPECT_FALSE(java.matches("C2 CompilerThr"));
    EXPECT_FALSE(java.matches("C1 CompilerThre"));
    EXPECT_FALSE(Pattern::parse("C2 CompilerThread*")->matches("C2 CompilerThre")) << "not of other texts";
    EXPECT_TRUE(Pattern::parse("systemd-networkd")->of_name().matches("systemd-network"));
}

TEST(Pattern, OfANameGuessesNothing) {
    const auto middle = Pattern::parse("C2 *CompilerThread0")->of_name();
    EXPECT_FALSE(middle.matches("C2 CompilerThre")) << "a '*' may stand for anything";
    const auto fits = Pattern::parse("C2 CompilerThre*")->of_name();
    EXPECT_EQ(fits.kept(), "");
    EXPECT_TRUE(fits.matches("C2 CompilerThre"));
}

} // namespace
