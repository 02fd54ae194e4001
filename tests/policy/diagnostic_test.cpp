// SPDX-License-Identifier: Apache-2.0
#include "policy/diagnostic.hpp"
#include "policy/suggest.hpp"

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
    EXPECT_EQ(to_string(finding("a\x1b[2J", 1, 1), true), "a.yaml:3:1: error: wrong\n    a?[2J\n    ^");
    const auto text =
        to_string(finding(std::string(100'000, 'x') + "!" + std::string(100'000, 'y'), 100'001, 1), true);
    EXPECT_LT(text.size(), 500U);
    EXPECT_NE(text.find("x!y"), std::string::npos);
    EXPECT_EQ(text.find('^') - text.find('\n', text.find('!')), text.find('!') - text.find('\n'));
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
