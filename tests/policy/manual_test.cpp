// SPDX-License-Identifier: Apache-2.0
// affinityd.policy(5) against the code: each key's block says what the key table says, each recipe is loaded.
#include "corpus.hpp"
#include "policy/fields.hpp"
#include "policy/reader.hpp"
#include "policy/set_check.hpp"

#include <filesystem>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

namespace {

using namespace corpus;

/// affinityd.policy(5), or another page of its folder.
std::string manual(const std::string& name = "affinityd.policy.5") {
    const char* path = std::getenv("AFFINITYD_POLICY_MANUAL");
    return path == nullptr ? std::string() : slurp(std::filesystem::path(path).parent_path() / name);
}

/// Characters that roff would take for something else.
std::string roff(std::string_view text) {
    std::string escaped;
    for (const char c : text) {
        if (c == '\\')
            escaped += "\\e";
        else if (c == '-')
            escaped += "\\-";
        else if (c == '\'')
            escaped += "\\(aq";
        else
            escaped += c;
    }
    return escaped;
}

std::string plain(std::string text) {
    const std::map<std::string, std::string> escapes{
        {"\\-", "-"}, {"\\e", "\\"}, {"\\(aq", "'"}, {"\\&", ""}};
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        const auto found = std::ranges::find_if(
            escapes, [&](const auto& pair) { return text.compare(at, pair.first.size(), pair.first) == 0; });
        result += found == escapes.end() ? text.substr(at, 1) : found->second;
        at += found == escapes.end() ? 1 : found->first.size();
    }
    return result;
}

std::string section(const std::string& page, std::string_view name) {
    const auto begin = page.find(".SH " + std::string(name) + "\n");
    if (begin == std::string::npos) return {};
    return page.substr(begin, page.find("\n.SH ", begin + 1) - begin + 1);
}

/// Examples follow a comment that names their file and stand between .RS and .RE.
std::vector<Document> examples(const std::string& page) {
    const std::string mark = ".\\\" example: ";
    std::vector<Document> found;
    std::istringstream lines(page);
    std::string line;
    bool inside = false;
    while (std::getline(lines, line)) {
        if (line.starts_with(mark))
            found.push_back({line.substr(mark.size()), {}});
        else if (line == ".RS")
            inside = !found.empty() && found.back().text.empty();
        else if (line == ".RE")
            inside = false;
        else if (inside)
            found.back().text += plain(line) + "\n";
    }
    return found;
}

TEST(Manual, HasABlockPerKeyAsTheCodeHasIt) {
    const auto page = manual();
    ASSERT_FALSE(page.empty());
    const std::map<Level, std::string> sections{
        {Level::top, "KEYS"}, {Level::match, "CONDITIONS"}, {Level::thread, "THREAD RULES"}};
    for (const auto& key : all_keys()) {
        const auto text = section(page, sections.at(key.level));
        const std::string block = ".SS " + roff(key.name) + "\n" + roff(key.meaning) +
                                  "\n.br\nType: " + roff(type_name(key)) +
                                  ". Default: " + roff(key.standard) + ".\n.br\nExample: \\fB" +
                                  roff(key.name) + ": " + roff(key.example) + "\\fP\n";
        EXPECT_NE(text.find(block), std::string::npos) << block;
    }
    std::size_t found = 0;
    for (auto at = page.find("\n.br\nType: "); at != std::string::npos;
         at = page.find("\n.br\nType: ", at + 1))
        ++found;
    EXPECT_EQ(found, all_keys().size()) << "a block for a key that is not there";
}

TEST(Manual, EveryExampleIsAPolicyWithoutAFault) {
    const auto all = examples(manual());
    EXPECT_GE(all.size(), 9U);
    const auto result = read_policies(all);
    EXPECT_TRUE(result.diagnostics.empty()) << said(result.diagnostics);
    EXPECT_EQ(result.set.policies.size(), all.size());
    const auto full = std::ranges::find(result.set.policies, "nginx", &Policy::name);
    ASSERT_NE(full, result.set.policies.end());
    EXPECT_EQ(full->model, Model::full);
}

TEST(Manual, NamesTheFoldersInTheOrderInWhichTheyAreRead) {
    const auto page = manual();
    std::size_t at = page.find(".SH SYNOPSIS\n");
    for (const auto& folder : standard_folders()) {
        const auto place = page.find(folder + "/*.yaml\n");
        ASSERT_NE(place, std::string::npos) << folder;
        EXPECT_GT(place, at) << folder;
        at = place;
    }
}

TEST(Manual, NoExampleCanBeForgedByAnyUser) {
    const auto set = read_policies(examples(manual())).set;
    for (const auto& policy : set.policies)
        EXPECT_FALSE(is_forgeable(policy, set)) << policy.name;
}

TEST(Manual, SaysOfEachConditionWhoCanForgeIt) {
    const auto table = section(manual("affinityd-security.7"), "CONDITIONS THAT USERS CAN FORGE");
    ASSERT_FALSE(table.empty());
    for (const auto& key : all_keys()) {
        const bool combines = key.name == "any" || key.name == "all" || key.name == "user-units";
        if (key.level != Level::match || combines) continue;
        const bool has_row = table.find("\n" + roff(key.name) + "|") != std::string::npos;
        const bool is_in_pair = key.name == "user" || key.name == "group";
        EXPECT_TRUE(has_row || (is_in_pair && table.find("\nuser, group|") != std::string::npos)) << key.name;
    }
}

TEST(Manual, SaysThatExclusiveIsNoFenceAndWhatIs) {
    const auto page = manual();
    const auto begin = page.find(".SS exclusive\n");
    const auto text = page.substr(begin, page.find(".SS separate\n") - begin);
    for (const char* words : {"no fence", "means: cpuset", "partition", "isolcpus="})
        EXPECT_NE(text.find(words), std::string::npos) << words;
}

/// The example of every key's block, set into the smallest file that it belongs to.
TEST(Manual, EveryKeysExampleIsRead) {
    for (const auto& key : all_keys()) {
        const std::string line = std::string(key.name) + ": " + std::string(key.example);
        std::string text = key.name == "version" ? "" : "version: 1\n";
        if (key.level == Level::match)
            text += "match: {" + line + (key.name == "comm" ? "" : ", comm: a") + "}\n";
        if (key.level == Level::thread) text += "match: {comm: a}\nthreads: [{" + line + "}]\n";
        if (key.level == Level::top)
            text += line + "\n" + (key.name == "match" || key.name == "default" ? "" : "match: {comm: a}\n");
        const auto result = read_policies({{"nginx.yaml", text}});
        if (key.name == "parent") { // of the policy that has the example's name: a ring
            EXPECT_FALSE(result.ok());
            continue;
        }
        EXPECT_TRUE(result.ok()) << text << said(result.diagnostics);
    }
}

/// The manual's default holds without the key.
TEST(Manual, DefaultsAreTheReaders) {
    const auto result = read_policies({{"a.yaml", "version: 1\nmatch: {comm: a}\n"}});
    ASSERT_EQ(result.set.policies.size(), 1U);
    const auto printed = "\n" + to_yaml(result.set.policies.front());
    std::size_t compared = 0;
    for (const auto& key : all_keys()) {
        const bool told = key.type == Type::choice || key.type == Type::boolean ||
                          key.type == Type::integer || key.type == Type::nics;
        if (key.level != Level::top || !told) continue;
        EXPECT_NE(printed.find("\n" + std::string(key.name) + ": " + std::string(key.standard) + "\n"),
                  std::string::npos)
            << key.name;
        ++compared;
    }
    EXPECT_EQ(compared, 18U);
}

} // namespace
