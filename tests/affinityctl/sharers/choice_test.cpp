// SPDX-License-Identifier: Apache-2.0
// How a thread rule has to read to mean some threads and no others.
#include "affinityctl/sharers/report.hpp"
#include "policy/pattern.hpp"
#include "seen_wakes.hpp"

#include <gtest/gtest.h>

namespace affinityctl {
namespace {

using test::SeenWakes;

struct Case {
    const char* what;
    std::vector<std::string> names; ///< of threads 100, 101, ...; the main thread first
    std::vector<int> members;       ///< of those, by place
    const char* choice;             ///< names joined by "|", then "@first-last"; "none"
};

std::string said(const std::optional<ThreadChoice>& choice) {
    if (!choice) return "none";
    std::string text;
    for (const auto& name : choice->names)
        text += (text.empty() ? "" : "|") + name;
    if (choice->index)
        text += "@" + std::to_string(choice->index->first) + "-" + std::to_string(choice->index->second);
    return text;
}

TEST(ThreadChoice, NamesComeFirst) {
    const Case cases[] = {
        {"two names", {"main", "a", "b", "c"}, {1, 3}, "a|c"},
        {"one name of both", {"main", "io", "io", "net"}, {1, 2}, "io"},
        {"numbered", {"main", "io-1", "io-2", "io-3", "net-1"}, {1, 2, 3}, "io-*"},
        {"numbered, but others are, too",
         {"main", "io-1", "io-2", "io-3", "io-4"},
         {1, 2, 3},
         "io-1|io-2|io-3"},
        {"nothing in common", {"main", "x", "y", "z"}, {1, 2, 3}, "x|y|z"},
        {"a longer name begins alike", {"main", "io", "io-helper", "net"}, {1, 3}, "io|net"},
        {"namesakes in a row", {"main", "w", "w", "w", "w"}, {3, 4}, "@3-4"},
        {"namesakes, not in a row", {"main", "w", "w", "w", "w"}, {1, 3}, "none"},
        {"others in between", {"main", "w", "x", "w", "w"}, {1, 3}, "w@1-3"},
        {"the main thread, too", {"w", "w", "w", "w"}, {0, 1}, "@0-1"},
        {"no name", {"main", "", "", "b"}, {1, 2}, "@1-2"},
        {"no name, not in a row", {"main", "", "b", ""}, {1, 3}, "none"},
        {"a star", {"main", "a*", "ab", "c"}, {1, 3}, "a\\*|c"},
        {"an expression", {"main", "/a/", "a", "c"}, {1, 3}, "\\/a/|c"},
        {"hostile", {"main", "a\x1b[31m", "b\n\xff", "c"}, {1, 2}, "a?\\[31m|b??"},
        {"hostile, and the same without", {"main", "a\x1b", "b", "a\x07"}, {1, 2}, "@1-2"},
    };
    for (const auto& one : cases) {
        SeenWakes seen;
        for (std::size_t i = 0; i < one.names.size(); ++i)
            seen.thread(100 + static_cast<int>(i), one.names[i]);
        std::vector<Wakes::Thread> members;
        for (const int place : one.members)
            members.push_back(SeenWakes::id(100 + place));
        EXPECT_EQ(said(choose_threads(seen.wakes.threads, members)), one.choice) << one.what;
    }
}

TEST(ThreadChoice, WhoHasEndedHasNoPlace) {
    SeenWakes seen;
    seen.thread(1, "main").thread(2, "w", -1).thread(3, "w").thread(4, "w").thread(5, "x");
    const auto group = std::vector{SeenWakes::id(2), SeenWakes::id(3), SeenWakes::id(4)};
    EXPECT_EQ(said(choose_threads(seen.wakes.threads, group)), "w");
    seen.thread(5, "w", 3);
    EXPECT_EQ(said(choose_threads(seen.wakes.threads, group)), "@1-2");
    const auto ended = std::vector{SeenWakes::id(2), SeenWakes::id(3)};
    EXPECT_EQ(said(choose_threads(seen.wakes.threads, ended)), "none") << "one that lives needs no group";
}

TEST(ThreadChoice, PatternsAreReadAsTheyAreMeant) {
    std::string all;
    for (int c = 1; c < 256; ++c)
        all += static_cast<char>(c);
    for (std::size_t at = 0; at < all.size(); at += 15) {
        const auto name = all.substr(at, 15);
        const auto pattern = name_pattern(name);
        EXPECT_TRUE(std::ranges::all_of(pattern, [](char c) { return c >= ' ' && c <= '~'; })) << pattern;
        const auto read = affinityd::policy::Pattern::parse(pattern);
        ASSERT_TRUE(read.has_value()) << pattern;
        EXPECT_TRUE(read->of_name().matches(name)) << pattern;
    }
    EXPECT_EQ(name_pattern(""), "");
}

} // namespace
} // namespace affinityctl
