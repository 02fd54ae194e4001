// SPDX-License-Identifier: Apache-2.0
#include "corpus.hpp"

#include <gtest/gtest.h>

namespace {

using namespace corpus;

TEST(BadCorpus, EachTextGetsItsExactFindings) {
    const auto all = cases_with(&Sample::findings);
    EXPECT_GE(all.size(), 437U);
    for (const auto& one : all) {
        const auto result = read_policies(one.documents);
        EXPECT_EQ(said(result.diagnostics), one.findings) << one.name;
        EXPECT_EQ(result.ok(), one.findings.find(": error: ") == std::string::npos) << one.name;
    }
}

TEST(BadCorpus, EveryFindingStandsInItsFile) {
    for (const auto& one : cases_with(&Sample::findings)) {
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
