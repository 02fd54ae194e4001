// SPDX-License-Identifier: Apache-2.0
#include "corpus.hpp"

#include <gtest/gtest.h>

namespace {

using namespace corpus;

TEST(BadCorpus, EachFileGetsItsExactMessage) {
    const auto all = cases("bad");
    EXPECT_GE(all.size(), 200U);
    for (const auto& one : all) {
        const auto result = read_policies(one.documents);
        const auto expected = one.expected.string() + ".expected";
        ASSERT_TRUE(fs::exists(expected)) << expected;
        EXPECT_EQ(said(result.diagnostics), slurp(expected)) << one.name;
    }
}

TEST(BadCorpus, EachFileIsRefusedOrWarnedOf) {
    for (const auto& one : cases("bad")) {
        const auto result = read_policies(one.documents);
        const bool warned = std::ranges::any_of(
            result.diagnostics, [](const auto& d) { return d.severity == Severity::warning; });
        const bool mild = one.name.starts_with("warn-");
        const bool may_warn = mild || one.name.starts_with("set-");
        EXPECT_TRUE(!result.ok() || (may_warn && warned)) << one.name;
        EXPECT_TRUE(!mild || result.ok()) << one.name;
    }
}

TEST(BadCorpus, EveryFindingStandsInItsFile) {
    for (const auto& one : cases("bad")) {
        for (const auto& finding : read_policies(one.documents).diagnostics) {
            const auto document = std::ranges::find(one.documents, finding.at.file, &Document::path);
            ASSERT_NE(document, one.documents.end()) << one.name;
            const auto lines = static_cast<unsigned>(std::ranges::count(document->text, '\n')) + 1;
            EXPECT_GE(finding.at.line, 1U) << one.name;
            EXPECT_LE(finding.at.line, lines) << one.name;
            EXPECT_GE(finding.at.column, 1U) << one.name;
            EXPECT_LE(finding.at.column, finding.source_line.size() + 1) << one.name;
            EXPECT_FALSE(finding.message.empty()) << one.name;
        }
    }
}

} // namespace
