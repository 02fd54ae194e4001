// SPDX-License-Identifier: Apache-2.0
// A journal that cannot be used, is not there, or is of another boot: the daemon starts and says so.
#include "host/boot_clock.hpp"
#include "host/file.hpp"
#include "state/journal.hpp"
#include "state/journal_marks.hpp"
#include "support/tree.hpp"

#include <filesystem>
#include <functional>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace affinityd::state {
namespace {

namespace fs = std::filesystem;

const machine::Subject set_aside = machine::TaskMask{{123, 456}, 120, "worker"};

class SetAside : public testing::Test {
  protected:
    [[nodiscard]] Journal open() const {
        auto journal = Journal::open(path());
        if (!journal) throw std::runtime_error(journal.error().to_string());
        return std::move(*journal);
    }
    void change() const { ASSERT_TRUE(open().remember(set_aside, online_, CpuSet{1}, "p")); }
    [[nodiscard]] std::string path(const std::string& ending = {}) const {
        return tree_.path("undo.journal" + ending);
    }
    [[nodiscard]] std::string text() const { return host::read_file(path())->value_or(""); }
    void replace_in_both(const std::string& from, const std::string& to) const {
        for (const std::string ending : {"", ".granted"}) {
            auto text = **host::read_file(path(ending));
            const auto at = text.find(from);
            ASSERT_NE(at, std::string::npos) << ending;
            tree_.file("undo.journal" + ending, text.replace(at, from.size(), to));
        }
    }
    test::Tree tree_;
    const CpuSet online_ = CpuSet::range(0, 3);
};

struct Obstacle {
    const char* name;
    std::function<void(const std::string& path)> lay;
};

class Obstacles : public SetAside, public testing::WithParamInterface<Obstacle> {};

TEST_P(Obstacles, ArePutAsideAndTheDaemonStarts) {
    for (const std::string ending : {"", ".granted"}) {
        change();
        fs::remove(path(ending));
        GetParam().lay(path(ending));
        {
            auto journal = open();
            EXPECT_TRUE(journal.damaged()) << ending;
            ASSERT_EQ(journal.faults().size(), 1U) << ending;
            EXPECT_EQ(journal.faults()[0].subject, path(ending));
            EXPECT_NE(journal.faults()[0].message.find(path(ending + ".unreadable")), std::string::npos)
                << journal.faults()[0].to_string();
            EXPECT_TRUE(journal.recall(set_aside, CpuSet{1}, online_) || journal.contains(set_aside))
                << "the other file knows it";
            EXPECT_NE(fs::symlink_status(path(ending + ".unreadable")).type(), fs::file_type::not_found);
            ASSERT_TRUE(journal.mended());
            ASSERT_TRUE(journal.remember(set_aside, online_, CpuSet{2}, "p"));
        }
        const auto again = open();
        EXPECT_TRUE(again.find(set_aside)) << "the new file is one";
        EXPECT_TRUE(again.faults().empty()) << "it is told once";
        EXPECT_FALSE(again.damaged());
    }
}

INSTANTIATE_TEST_SUITE_P(
    Table, Obstacles,
    testing::Values(Obstacle{"Folder",
                             [](const auto& path) { fs::create_directories(path + "/with a file in it"); }},
                    Obstacle{"Pipe", [](const auto& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); }},
                    Obstacle{"Link", [](const auto& path) { fs::create_symlink("/etc/passwd", path); }},
                    Obstacle{"LinkToNowhere", [](const auto& path) { fs::create_symlink("/nowhere", path); }},
                    Obstacle{"LargerThan256MiB",
                             [](const auto& path) {
                                 std::ofstream(path).flush();
                                 fs::resize_file(path, (256U << 20) + 1);
                             }}),
    [](const auto& one) { return std::string(one.param.name); });

TEST_F(SetAside, WhatWasPutAsideBeforeIsNotLost) {
    tree_.file("undo.journal.unreadable", "of before");
    tree_.folder("undo.journal/in the way");
    EXPECT_EQ(open().faults().size(), 1U);
    EXPECT_EQ(**host::read_file(path(".unreadable")), "of before");
    EXPECT_TRUE(fs::is_directory(path(".unreadable-2")));
}

TEST_F(SetAside, AFileThatWasPutAsideBeforeIsNotOverwritten) {
    tree_.file("undo.journal.unreadable", "of before");
    std::ofstream(path("")).flush();
    fs::resize_file(path(""), (256U << 20) + 1);
    EXPECT_EQ(open().faults().size(), 1U);
    EXPECT_EQ(**host::read_file(path(".unreadable")), "of before");
    EXPECT_EQ(fs::file_size(path(".unreadable-2")), (256U << 20) + 1);
}

TEST_F(SetAside, BothFilesBeginWithTheBoot) {
    change();
    ASSERT_FALSE(host::boot_id().empty());
    EXPECT_TRUE(text().starts_with("of boot " + host::boot_id() + "\n"))
        << "as earlier versions know it: " << text();
    EXPECT_TRUE((**host::read_file(path(".granted"))).starts_with("of boot " + host::boot_id() + "\n"));
    auto journal = open();
    for (int i = 0; i < 10'000; ++i)
        ASSERT_TRUE(journal.remember(set_aside, online_, CpuSet{static_cast<unsigned>(i % 4)}, "p"));
    EXPECT_LT(fs::file_size(path()), 10'000U * 60) << "it was rewritten";
    EXPECT_TRUE(text().starts_with(header()));
    EXPECT_FALSE(open().damaged());
}

constexpr const char* another_boot = "00000000-0000-4000-8000-000000000000";

/// As a daemon of another boot wrote it, one of this version or of an earlier one.
class AnotherBoot : public SetAside, public testing::WithParamInterface<std::string> {};

TEST_P(AnotherBoot, WhatWasChangedThenIsNotInForce) {
    change();
    replace_in_both(header(), GetParam());
    auto journal = open();
    EXPECT_EQ(journal.size(), 0U);
    EXPECT_FALSE(journal.recall(set_aside, CpuSet{1}, online_)) << "another task has the number by now";
    EXPECT_FALSE(journal.damaged());
    ASSERT_EQ(journal.faults().size(), 1U);
    EXPECT_NE(journal.faults()[0].message.find("earlier boot"), std::string::npos);
    ASSERT_TRUE(journal.remember(set_aside, online_, CpuSet{2}, "p"));
    EXPECT_TRUE(open().find(set_aside));
    EXPECT_TRUE(open().faults().empty());
}

INSTANTIATE_TEST_SUITE_P(Table, AnotherBoot,
                         testing::Values(std::string("of boot ") + another_boot + "\n",
                                         header_of(another_boot)));

TEST_F(SetAside, AFileOfAnEarlierVersionOfThisBootIsReadAndHasNoFault) {
    for (const auto& begin : {std::string(), "of boot " + host::boot_id() + "\n"}) {
        change();
        replace_in_both(header(), begin);
        const auto journal = open();
        EXPECT_TRUE(journal.find(set_aside));
        EXPECT_TRUE(journal.faults().empty());
        EXPECT_FALSE(journal.damaged());
    }
}

/// Of one file, in each bit of what it begins with.
class FlippedBits : public SetAside, public testing::WithParamInterface<std::string> {
  protected:
    void flip_each(const std::string& begin, const std::function<void(const std::string& where)>& then) {
        change();
        const auto journal = text();
        const auto granted = **host::read_file(path(".granted"));
        const auto& whole = GetParam().empty() ? journal : granted;
        const auto rest = whole.substr(header().size());
        for (std::size_t bit = 0; bit < begin.size() * 8; ++bit) {
            auto flipped = begin + rest;
            flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
            tree_.file("undo.journal", GetParam().empty() ? flipped : journal);
            tree_.file("undo.journal.granted", GetParam().empty() ? granted : flipped);
            then("byte " + std::to_string(bit / 8) + " bit " + std::to_string(bit % 8));
        }
    }
};

TEST_P(FlippedBits, InTheFirstLinesLoseNothingAndAreSaid) {
    flip_each(header(), [&](const std::string& where) {
        const bool is_last_line_end = where.starts_with("byte " + std::to_string(header().size() - 1) + " ");
        auto journal = open();
        ASSERT_FALSE(journal.faults().empty()) << where;
        EXPECT_EQ(journal.faults()[0].subject, path(GetParam())) << where;
        if (!GetParam().empty()) fs::remove(path());
        const bool is_known = GetParam().empty()
                                  ? journal.find(set_aside) && journal.find(set_aside)->original == online_
                                  : open().recall(set_aside, CpuSet{1}, online_).has_value();
        EXPECT_TRUE(is_known || is_last_line_end) << where;
        if (is_last_line_end && GetParam().empty()) {
            EXPECT_TRUE(journal.damaged())
                << where << ": the record's line has become part of the one before it";
        }
        EXPECT_TRUE(open().faults().empty() || !GetParam().empty()) << where << ": it is told once";
    });
}

TEST_P(FlippedBits, InTheFirstLinesOfAnotherBootPutNothingInForce) {
    flip_each(header_of(another_boot), [&](const std::string& where) {
        const auto journal = open();
        EXPECT_TRUE(GetParam().empty() ? journal.size() == 0 : journal.find(set_aside).has_value()) << where;
        if (!GetParam().empty()) return;
        ASSERT_FALSE(journal.faults().empty());
        EXPECT_NE(journal.faults()[0].message.find("earlier boot"), std::string::npos) << where;
    });
}

INSTANTIATE_TEST_SUITE_P(Files, FlippedBits, testing::Values("", ".granted"),
                         [](const auto& file) { return file.param.empty() ? "Journal" : "Granted"; });

TEST_F(SetAside, AFlippedBitInEachOfTheFirstLinesLosesNothing) {
    change();
    const auto whole = text();
    const auto second = header().find('\n') + 1;
    for (std::size_t one = 0; one < second; ++one)
        for (std::size_t other = second; other + 1 < header().size(); other += 5) {
            auto flipped = whole;
            flipped[one] = static_cast<char>(flipped[one] ^ 1);
            flipped[other] = static_cast<char>(flipped[other] ^ 1);
            tree_.file("undo.journal", flipped);
            const auto journal = open();
            EXPECT_TRUE(journal.find(set_aside)) << one << " and " << other;
            EXPECT_TRUE(journal.damaged() || !journal.faults().empty()) << one << " and " << other;
        }
}

TEST_F(SetAside, AnIdThatIsNoneIsDamageAndOfNoOtherBoot) {
    for (const auto* begin :
         {"of boot \n", "of boot 1234\n", "of boot 0000000-00000-4000-8000-000000000000\n",
          "of boot 00000000-0000-4000-8000-00000000000G\n"}) {
        change();
        replace_in_both(header(), begin);
        const auto journal = open();
        EXPECT_TRUE(journal.find(set_aside)) << begin;
        EXPECT_EQ(journal.faults().size(), 2U) << begin << ": one for each file";
    }
}

TEST_F(SetAside, AJournalThatIsMissingOrEmptyAlthoughMasksWereGrantedIsSaid) {
    for (const bool is_empty : {false, true}) {
        change();
        fs::remove(path());
        if (is_empty) tree_.file("undo.journal", "");
        {
            const auto journal = open();
            ASSERT_EQ(journal.faults().size(), 1U) << is_empty;
            EXPECT_NE(journal.faults()[0].message.find("although 1 masks were granted"), std::string::npos);
            EXPECT_FALSE(journal.damaged()) << "which masks are ours is known";
        }
        EXPECT_TRUE(open().faults().empty()) << "it is told once";
    }
}

TEST_F(SetAside, TheFirstStartAndOneAfterAnOrderlyEndHaveNothingToSay) {
    EXPECT_TRUE(open().faults().empty());
    EXPECT_TRUE(open().faults().empty());
    change();
    ASSERT_TRUE(open().forget(set_aside));
    EXPECT_TRUE(open().faults().empty());
}

} // namespace
} // namespace affinityd::state
