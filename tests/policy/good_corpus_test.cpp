// SPDX-License-Identifier: Apache-2.0
#include "corpus.hpp"

#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace {

using namespace corpus;

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
        lines.push_back(line);
    return lines;
}

/// Lines that the smallest policy has, too, but for `match`.
std::set<std::string> usual_lines() {
    std::set<std::string> usual;
    for (const auto& one : cases_with(&Sample::means))
        if (one.is_in_full)
            for (const auto& line : lines_of(one.means))
                if (!line.starts_with("match:")) usual.insert(line);
    return usual;
}

/// Policies in the order in which they are asked, each complete, or without usual lines.
std::string meaning(const PolicySet& set, const std::set<std::string>& usual = {}) {
    std::string text;
    for (const auto& policy : set.policies) {
        if (policy.name != "policy") text += "# " + policy.name + "\n";
        for (const auto& line : lines_of(to_yaml(policy)))
            if (!usual.contains(line)) text += line + "\n";
    }
    return text;
}

TEST(GoodCorpus, EachFileMeansWhatItsExpectationSays) {
    const auto usual = usual_lines();
    const auto all = cases_with(&Sample::means);
    EXPECT_GE(all.size(), 115U);
    EXPECT_GE(usual.size(), 20U);
    for (const auto& one : all) {
        const auto result = read_policies(one.documents);
        EXPECT_EQ(said(result.diagnostics), one.findings) << one.name;
        EXPECT_EQ(meaning(result.set, one.is_in_full ? std::set<std::string>() : usual), one.means)
            << one.name;
    }
}

TEST(GoodCorpus, WhatIsPrintedIsReadAgainAsTheSame) {
    for (const auto& one : cases_with(&Sample::means)) {
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
