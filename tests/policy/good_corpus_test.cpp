// SPDX-License-Identifier: Apache-2.0
#include "corpus.hpp"

#include <gtest/gtest.h>

namespace {

using namespace corpus;

/// Policies in the order in which they are asked, each complete.
std::string meaning(const PolicySet& set) {
    std::string text;
    for (const auto& policy : set.policies)
        text += "# " + policy.name + "\n" + to_yaml(policy);
    return text;
}

TEST(GoodCorpus, EachFileMeansWhatItsExpectationSays) {
    const auto all = cases("good");
    EXPECT_GE(all.size(), 60U);
    for (const auto& one : all) {
        const auto result = read_policies(one.documents);
        EXPECT_TRUE(result.diagnostics.empty()) << said(result.diagnostics);
        const auto expected = one.expected.string() + ".expected";
        ASSERT_TRUE(fs::exists(expected)) << expected;
        EXPECT_EQ(meaning(result.set), slurp(expected)) << one.name;
    }
}

TEST(GoodCorpus, WhatIsPrintedIsReadAgainAsTheSame) {
    for (const auto& one : cases("good")) {
        const auto first = read_policies(one.documents).set;
        std::vector<Document> printed;
        for (const auto& policy : first.policies)
            printed.push_back({policy.name + ".yaml", to_yaml(policy)});
        const auto again = read_policies(printed);
        ASSERT_TRUE(again.ok()) << one.name << "\n" << said(again.diagnostics);
        EXPECT_EQ(meaning(again.set), meaning(first)) << one.name;
        for (std::size_t at = 0; at < first.policies.size(); ++at)
            EXPECT_EQ(specificity(again.set.policies[at].match), specificity(first.policies[at].match))
                << one.name;
    }
}

} // namespace
