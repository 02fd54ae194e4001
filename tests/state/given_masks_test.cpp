// SPDX-License-Identifier: Apache-2.0
#include "state/journal.hpp"
#include "support/tree.hpp"

#include <filesystem>

#include <gtest/gtest.h>

namespace affinityd::state {
namespace {

const CpuSet online = CpuSet::range(0, 3);
const Descent descent{"/system.slice/a\tb%.service", 77};

GivenMask given(unsigned cpu, const std::string& policy = "p", int session = 77) {
    return {CpuSet{cpu}, online, policy, {descent.group, session}, 200};
}

class Given : public testing::Test {
  protected:
    [[nodiscard]] Journal open() const { return *Journal::open(tree_.path("undo.journal")); }
    test::Tree tree_;
};

TEST_F(Given, MasksAreKnownToTheNextDaemonAlsoWhenFilesWereRewritten) {
    for (const bool is_rewritten : {false, true}) {
        auto journal = open();
        for (int i = 0; i < 3; ++i)
            ASSERT_TRUE(journal.note_given(given(1)));
        const machine::TaskMask task{{7, 8}, 7, "t"};
        for (int i = 0; is_rewritten && i < 20'000; ++i)
            ASSERT_TRUE(journal.remember(task, online, CpuSet{static_cast<unsigned>(i % 2)}, "p"));
        const auto again = open();
        EXPECT_FALSE(again.damaged());
        EXPECT_EQ(again.contents().given().size(), 1U) << "each once";
        EXPECT_EQ(again.contents().given().find(CpuSet{1}, online, 200, descent), (MaskSource{online, "p"}));
    }
    EXPECT_LT(std::filesystem::file_size(tree_.path("undo.journal")), 5000U * 100) << "it was rewritten";
}

TEST_F(Given, MasksExplainExactlyThoseOfTheSameDescentThatWereBornLater) {
    auto journal = open();
    ASSERT_TRUE(journal.note_given(given(1)));
    const auto& known = journal.contents().given();
    EXPECT_TRUE(known.find(CpuSet{1}, online, 200, {"", 77}));
    EXPECT_TRUE(known.find(CpuSet{1}, online, 200, {descent.group, 0}));
    EXPECT_TRUE(known.find(CpuSet{1, 9}, online, 200, descent)) << "CPU 9 is offline";
    EXPECT_FALSE(known.find(CpuSet{1}, online, 199, descent));
    EXPECT_FALSE(known.find(CpuSet{1, 2}, online, 200, descent));
    EXPECT_FALSE(known.find(CpuSet{1}, online, 200, {"/other", 78}));
    EXPECT_FALSE(known.find(CpuSet{1}, online, 200, {}));
    EXPECT_TRUE(known.contains(CpuSet{1}, online, 200));
    EXPECT_FALSE(known.contains(CpuSet{1}, online, 199));
    ASSERT_TRUE(journal.note_given({CpuSet{2}, online, "p", {"/", 1}, 200}));
    EXPECT_FALSE(known.find(CpuSet{2}, online, 200, {"/", 1}))
        << "everybody without a group of his own has these";
}

TEST_F(Given, MasksOfAPolicyThatKeepsAreForgottenAndSoAreAllAtTheEnd) {
    const machine::TaskMask task{{7, 8}, 7, "t"};
    {
        auto journal = open();
        ASSERT_TRUE(journal.note_given(given(1, "keeps")));
        ASSERT_TRUE(journal.note_given(given(2, "other")));
        ASSERT_TRUE(journal.remember(task, online, CpuSet{1}, "keeps"));
        ASSERT_TRUE(journal.settle(task, Parting::kept));
        EXPECT_EQ(journal.contents().given().size(), 1U);
    }
    EXPECT_EQ(open().contents().given().size(), 1U);
    EXPECT_FALSE(open().contents().given().contains(CpuSet{1}, online, 300));
    ASSERT_TRUE(open().forget_given());
    EXPECT_EQ(open().contents().given().size(), 0U);
    EXPECT_FALSE(open().damaged());
    ASSERT_TRUE(open().note_given(given(1, "keeps")));
    EXPECT_EQ(open().contents().given().size(), 1U) << "given again";
}

TEST_F(Given, MasksOfOthersAreNotLostIfAPolicyKeepsWhileTheFileIsRewritten) {
    constexpr int sessions = 100;
    const machine::TaskMask task{{7, 8}, 7, "t"};
    {
        auto journal = open();
        ASSERT_TRUE(journal.remember(task, online, CpuSet{1}, "keeps"));
        for (const auto* policy : {"keeps", "other"})
            for (int session = 1; session <= sessions; ++session)
                ASSERT_TRUE(journal.note_given(given(1, policy, session)));
        std::filesystem::remove(tree_.path("undo.journal"));
        unsigned slices = 0;
        while (!journal.look_after_files([] { return true; }))
            if (++slices == 5) {
                ASSERT_TRUE(journal.settle(task, Parting::kept));
            }
        EXPECT_GT(slices, 5U) << "it kept while the file was rewritten";
    }
    EXPECT_EQ(open().contents().given().size(), sessions);
    EXPECT_FALSE(open().damaged());
}

// Four thousand lines with CPU 1048575 would take gigabytes.
TEST_F(Given, MasksWithCpusThatNoKernelHasAreDamage) {
    const auto is_read = [](unsigned cpu, unsigned of_original) {
        auto line = to_line(GivenMask{CpuSet{cpu}, CpuSet{of_original}, "p", descent, 200});
        line.pop_back();
        return parse_given(line).has_value();
    };
    EXPECT_TRUE(is_read(8191, 8191));
    EXPECT_FALSE(is_read(8192, 0));
    EXPECT_FALSE(is_read(0, 8192));
    EXPECT_FALSE(is_read(CpuSet::max_cpu, CpuSet::max_cpu));
}

TEST_F(Given, MasksOfAPolicyWithoutTasksAreOverUntilItGivesThemAgain) {
    const machine::TaskMask task{{7, 8}, 7, "t"};
    constexpr std::uint64_t end = 1000, later = end + 1;
    {
        auto journal = open();
        ASSERT_TRUE(journal.remember(task, online, CpuSet{1}, "p"));
        ASSERT_TRUE(journal.note_given(given(1)));
        ASSERT_TRUE(journal.note_given(given(2, "other")));
        ASSERT_TRUE(journal.end_given(end));
        EXPECT_TRUE(journal.contents().given().contains(CpuSet{1}, online, later)) << "a task has it";
        EXPECT_FALSE(journal.contents().given().contains(CpuSet{2}, online, later));
        ASSERT_TRUE(journal.settle(task));
        ASSERT_TRUE(journal.end_given(end));
    }
    for (int restart = 0; restart < 2; ++restart) { // each rewrites the file
        const auto again = open();
        EXPECT_FALSE(again.damaged());
        for (const unsigned cpu : {1U, 2U}) {
            EXPECT_TRUE(again.contents().given().contains(CpuSet{cpu}, online, end));
            EXPECT_FALSE(again.contents().given().contains(CpuSet{cpu}, online, later));
        }
    }
    auto again = given(1);
    again.since = later + 10;
    ASSERT_TRUE(open().note_given(again));
    for (int restart = 0; restart < 2; ++restart) {
        const auto journal = open();
        EXPECT_TRUE(journal.contents().given().contains(CpuSet{1}, online, again.since)) << "given again";
        EXPECT_FALSE(journal.contents().given().contains(CpuSet{1}, online, later)) << "not in between";
        EXPECT_TRUE(journal.contents().given().contains(CpuSet{1}, online, end));
        EXPECT_FALSE(journal.contents().given().contains(CpuSet{2}, online, again.since));
    }
}

TEST_F(Given, MasksTakeBoundedMemoryAndTheOldestMakeRoom) {
    GivenMasks masks;
    constexpr int surplus = 10;
    for (int i = 0; i < static_cast<int>(GivenMasks::most) + surplus; ++i)
        EXPECT_TRUE(masks.add(given(1, "p", 100 + i)));
    EXPECT_EQ(masks.size(), GivenMasks::most);
    EXPECT_FALSE(masks.find(CpuSet{1}, online, 200, {"", 100 + surplus - 1}));
    EXPECT_TRUE(masks.find(CpuSet{1}, online, 200, {"", 100 + surplus}));
    masks.forget("p");
    EXPECT_EQ(masks.size(), 0U);
    EXPECT_TRUE(masks.add(given(1, "p", 100)));
}

TEST_F(Given, MasksOfManySessionsDoNotPushOutThoseOfAnotherGroup) {
    GivenMasks masks;
    EXPECT_TRUE(masks.add({CpuSet{1}, online, "p", {"/system.slice/victim.service", 5}, 200}));
    for (int i = 0; i < 2 * static_cast<int>(GivenMasks::most); ++i)
        EXPECT_TRUE(masks.add(given(1, "p", 100 + i)));
    EXPECT_EQ(masks.size(), GivenMasks::most);
    EXPECT_TRUE(masks.find(CpuSet{1}, online, 200, {"/system.slice/victim.service", 0}));
}

TEST_F(Given, MasksInForceOutliveAnyNumberOfOthersThatAreOver) {
    const Descent server{"/system.slice/app.service", 77};
    constexpr std::uint64_t lives = GivenMasks::most + 10;
    auto journal = open();
    ASSERT_TRUE(journal.remember({machine::TaskMask{{7, 100}, 7, "server"}}, online, CpuSet{1}, "server"));
    ASSERT_TRUE(journal.note_given({CpuSet{1}, online, "server", server, 100}));
    std::uint64_t now = 1000;
    for (const bool has_own_session : {false, true})
        for (std::uint64_t life = 0; life < lives; ++life, now += 6000) {
            const Descent helper{server.group, has_own_session ? static_cast<int>(100 + life) : 77};
            ASSERT_TRUE(journal.note_given({CpuSet{2}, online, "helper", helper, now}));
            ASSERT_TRUE(journal.end_given(now + 3000));
        }
    for (int restart = 0; restart < 2; ++restart) {
        const auto again = open();
        EXPECT_EQ(again.contents().given().size(), GivenMasks::most);
        EXPECT_TRUE(again.contents().given().find(CpuSet{1}, online, now, server));
    }
}

TEST_F(Given, MasksAreKnownForTheLastTimesThatTheyWereGiven) {
    constexpr std::uint64_t surplus = 3;
    auto journal = std::optional(open());
    const auto lives = GivenMasks::most_lives + surplus;
    for (std::uint64_t life = 0; life < lives; ++life) {
        auto again = given(1);
        again.since = 1000 + life * 100;
        ASSERT_TRUE(journal->note_given(again));
        if (life + 1 == lives) break;
        ASSERT_TRUE(journal->end_given(again.since + 50));
        if (life == lives / 2) journal.emplace(open()); // written anew, in another order
    }
    const auto& masks = journal->contents().given();
    EXPECT_EQ(masks.size(), GivenMasks::most_lives);
    for (std::uint64_t life = 0; life < lives; ++life)
        EXPECT_EQ(masks.contains(CpuSet{1}, online, 1000 + life * 100), life >= surplus) << life;
    EXPECT_FALSE(masks.contains(CpuSet{1}, online, 1000 + surplus * 100 + 60)) << "not in between";
    EXPECT_TRUE(masks.contains(CpuSet{1}, online, 1'000'000)) << "in force";
}

} // namespace
} // namespace affinityd::state
