// SPDX-License-Identifier: Apache-2.0
#include "policy/diagnostic.hpp"

#include <array>

#include <gtest/gtest.h>

namespace {

using namespace affinityd::policy;

Diagnostic finding(std::string line, unsigned column, unsigned length) {
    return {.severity = Severity::error,
            .at = {"a.yaml", 3, column},
            .length = length,
            .message = "wrong",
            .hint = "",
            .source_line = std::move(line)};
}

TEST(Diagnostic, OneLine) {
    Diagnostic d = finding("x", 2, 1);
    EXPECT_EQ(to_string(d), "a.yaml:3:2: error: wrong");
    d.hint = "do it";
    d.severity = Severity::warning;
    EXPECT_EQ(to_string(d), "a.yaml:3:2: warning: wrong (do it)");
    d.at = {};
    d.severity = Severity::note;
    EXPECT_EQ(to_string(d), "note: wrong (do it)");
}

TEST(Diagnostic, UnderlinesCharactersNotBytes) {
    EXPECT_EQ(to_string(finding("cpus: foo", 7, 3), true),
              "a.yaml:3:7: error: wrong\n    cpus: foo\n          ^^^");
    EXPECT_EQ(to_string(finding("ü: bär", 5, 4), true), "a.yaml:3:5: error: wrong\n    ü: bär\n       ^^^");
    EXPECT_EQ(to_string(finding("\tx", 2, 1), true), "a.yaml:3:2: error: wrong\n    \tx\n    \t^");
    EXPECT_EQ(to_string(finding("end", 4, 1), true), "a.yaml:3:4: error: wrong\n    end\n       ^");
}

TEST(Diagnostic, ShowsNoControlCharactersAndNoEndlessLines) {
    EXPECT_EQ(to_string(finding("a\x1b[2J", 1, 1), true), "a.yaml:3:1: error: wrong\n    a\\x1b[2J\n    ^");
    const auto text =
        to_string(finding(std::string(100'000, 'x') + "!" + std::string(100'000, 'y'), 100'001, 1), true);
    EXPECT_LT(text.size(), 500U);
    EXPECT_NE(text.find("x!y"), std::string::npos);
    EXPECT_EQ(text.find('^') - text.find('\n', text.find('!')), text.find('!') - text.find('\n'));
}

// U+202E turns the direction of writing, U+009B begins a command to a terminal, a byte may be no UTF-8.
TEST(Diagnostic, EscapesWhatATerminalWouldActUponAndMarksItAsShown) {
    EXPECT_EQ(to_string(finding("a\u202eb", 2, 3), true),
              "a.yaml:3:2: error: wrong\n    a\\u202eb\n     ^^^^^^");
    EXPECT_EQ(to_string(finding("\u009bx \xff!", 4, 1), true),
              "a.yaml:3:4: error: wrong\n    \\u009bx \\xff!\n           ^");
    EXPECT_EQ(to_string(finding("\xff!", 1, 1), true), "a.yaml:3:1: error: wrong\n    \\xff!\n    ^^^^");
    auto named = finding("", 1, 1);
    named.at.file = "\x1b[2J\u202e.yaml";
    named.message = "bad\nline \x9b";
    named.hint = "not \u2066";
    EXPECT_EQ(to_string(named), "\\x1b[2J\\u202e.yaml:3:1: error: bad\\nline \\x9b (not \\u2066)");
}

TEST(Diagnostic, CutsALongLineBetweenCharacters) {
    std::string line;
    for (int at = 0; at < 1000; ++at)
        line += "ü";
    for (unsigned column = 990; column < 1000; ++column) {
        const auto text = to_string(finding(line, column, 1), true);
        EXPECT_LT(text.size(), 500U);
        EXPECT_NE(text.find("üüü"), std::string::npos);
    }
    const auto bytes = to_string(finding(std::string(100'000, '\x80'), 50'000, 1), true);
    EXPECT_LT(bytes.size(), 1500U) << "no character to go back to";
}

TEST(Suggest, NearWordsOnly) {
    constexpr std::array<std::string_view, 4> words{"cpus", "exclusive", "on_stop", "near"};
    EXPECT_EQ(nearest_word("cpu", words), "cpus");
    EXPECT_EQ(nearest_word("CPUS", words), "cpus");
    EXPECT_EQ(nearest_word("exlcusive", words), "exclusive");
    EXPECT_EQ(nearest_word("on-stop", words), "on_stop");
    EXPECT_EQ(nearest_word("nonsense", words), "");
    EXPECT_EQ(nearest_word("", words), "");
    EXPECT_EQ(nearest_word("x", words), "");
    EXPECT_EQ(nearest_word(std::string(100'000, 'c'), words), "");
    EXPECT_EQ(did_you_mean("cpu", words), "did you mean 'cpus'?");
    EXPECT_EQ(either(words), "cpus, exclusive, on_stop or near");
    EXPECT_EQ(in_quotes(std::string(59, 'a') + "ü"), "'" + std::string(59, 'a') + "...'");
}

} // namespace
