// SPDX-License-Identifier: Apache-2.0
#include "host/file.hpp"
#include "state/former_slots.hpp"
#include "state/journal_line.hpp"
#include "support/tree.hpp"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace affinityd::state {
namespace {

class FormerSlotsTest : public testing::Test {
  protected:
    [[nodiscard]] std::string path() const { return tree_.path("slots"); }
    /// As the next daemon finds it.
    [[nodiscard]] FormerSlots::Slots taken() const {
        const FormerSlots slots(path());
        const auto* found = slots.find(FormerSlots::Clock::now());
        return found == nullptr ? FormerSlots::Slots{} : *found;
    }
    test::Tree tree_;
    const FormerSlots::Slots slots_{{{10, 100}, 3}, {{11, 100}, 0}, {{12, 5'000'000'000}, 191}};
};

TEST_F(FormerSlotsTest, ServeTheNextDaemon) {
    ASSERT_TRUE(FormerSlots(path()).keep(slots_));
    EXPECT_EQ(taken(), slots_);
    EXPECT_EQ(taken(), slots_) << "also one after a daemon that was killed at its start";
}

TEST_F(FormerSlotsTest, AreWrittenWhenTheyHaveChanged) {
    FormerSlots slots(path());
    ASSERT_TRUE(slots.keep(slots_));
    ASSERT_TRUE(host::replace_file(path(), "of others\n"));
    ASSERT_TRUE(slots.keep(slots_));
    EXPECT_EQ(**host::read_file(path()), "of others\n") << "nothing has changed";
    std::filesystem::remove(path());
    ASSERT_TRUE(slots.keep(slots_));
    EXPECT_EQ(taken(), slots_) << "it is gone";
    ASSERT_TRUE(slots.keep({{{10, 100}, 4}}));
    EXPECT_EQ(taken(), (FormerSlots::Slots{{{10, 100}, 4}}));
}

TEST_F(FormerSlotsTest, WhereTheyCannotBeWrittenThatIsSaid) {
    std::filesystem::create_directory(path());
    EXPECT_FALSE(FormerSlots(path()).keep(slots_));
}

TEST_F(FormerSlotsTest, ServeForAWhile) {
    ASSERT_TRUE(FormerSlots(path()).keep(slots_));
    const FormerSlots slots(path());
    const auto now = FormerSlots::Clock::now();
    EXPECT_NE(slots.find(now), nullptr);
    EXPECT_EQ(slots.find(now + FormerSlots::lasting), nullptr);
}

TEST_F(FormerSlotsTest, ThereAreNoneWithoutAFile) {
    EXPECT_EQ(taken(), FormerSlots::Slots{});
    EXPECT_EQ(FormerSlots("").find(FormerSlots::Clock::now()), nullptr);
    ASSERT_TRUE(FormerSlots("").keep(slots_));
}

TEST_F(FormerSlotsTest, NoFileIsWrittenForNone) {
    ASSERT_TRUE(FormerSlots(path()).keep({}));
    EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(FormerSlotsTest, WhoHasNoneLeavesNoneOfAnEarlierDaemon) {
    ASSERT_TRUE(FormerSlots(path()).keep(slots_));
    ASSERT_TRUE(FormerSlots(path()).keep({}));
    EXPECT_EQ(taken(), FormerSlots::Slots{});
}

TEST_F(FormerSlotsTest, LinesThatAreTornCountForNothing) {
    ASSERT_TRUE(FormerSlots(path()).keep(slots_));
    auto text = **host::read_file(path());
    text.resize(text.size() - 4);
    ASSERT_TRUE(host::replace_file(path(), text + "\nslot\t-1\tx\t99999999999999\t0\n\0\nslot"));
    EXPECT_EQ(taken().size(), slots_.size() - 1);
}

TEST_F(FormerSlotsTest, ThoseOfAnEarlierBootCountForNothing) {
    ASSERT_TRUE(FormerSlots(path()).keep(slots_));
    const auto text = **host::read_file(path());
    const auto lines = text.substr(header().size());
    ASSERT_TRUE(host::replace_file(
        path(), LineWriter("of boot 01234567-89ab-cdef-0123-456789abcdef").finish() + lines));
    EXPECT_EQ(taken(), FormerSlots::Slots{});
}

TEST_F(FormerSlotsTest, ALinkOrAFolderIsNotRead) {
    ASSERT_TRUE(FormerSlots(tree_.path("elsewhere")).keep(slots_));
    std::filesystem::create_symlink(tree_.path("elsewhere"), path());
    EXPECT_EQ(taken(), FormerSlots::Slots{});
    std::filesystem::remove(path());
    std::filesystem::create_directory(path());
    EXPECT_EQ(taken(), FormerSlots::Slots{});
}

} // namespace
} // namespace affinityd::state
