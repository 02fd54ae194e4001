// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"
#include "host/boot_clock.hpp"
#include "state/journal.hpp"
#include "state/journal_marks.hpp"
#include "support/full_disk.hpp"
#include "support/journal_copy.hpp"
#include "support/tree.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace affinityd::state {
namespace {

using machine::FlowCount;
using machine::FlowTable;
using machine::IrqMask;
using machine::Setting;
using machine::SteeringMask;
using machine::Subject;
using machine::TaskMask;
using machine::UnitCpuset;

using test::device;
const Subject task = TaskMask{{123, 456}, 120, "a\tname\nwith %41 bytes"};
const Subject irq = IrqMask{device, "eth0-TxRx-0", 0, 40};
const Subject steering = SteeringMask{device, machine::Direction::tx, 0, "eth0"};

std::string read_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

class JournalTest : public testing::Test {
  protected:
    Journal open() {
        auto journal = Journal::open(path());
        if (!journal) throw std::runtime_error(journal.error().to_string());
        return std::move(*journal);
    }
    [[nodiscard]] std::string path() const { return tree_.path("undo.journal"); }
    test::Tree tree_;
};

TEST_F(JournalTest, KeepsTheFirstOriginalOverChangesAndRestarts) {
    {
        auto journal = open();
        ASSERT_TRUE(journal.remember(task, CpuSet::range(0, 3), CpuSet{1}, "p"));
        ASSERT_TRUE(journal.confirm(task, CpuSet{1}));
        ASSERT_TRUE(journal.remember(task, CpuSet{1}, CpuSet{2}, "q"));
    }
    const auto journal = open();
    const auto record = journal.find(task);
    ASSERT_TRUE(record);
    EXPECT_EQ(record->original, CpuSet::range(0, 3));
    EXPECT_EQ(record->asked, CpuSet{2});
    EXPECT_EQ(record->policy, "q");
    EXPECT_EQ(journal.contents().held().threads().of(120), std::vector<TaskId>({{123, 456}}));
    EXPECT_TRUE(journal.contents().held().threads().of(123).empty());
}

/// A virtual interface's map that has a record while the number of queues is changed, and keeps what it has.
TEST_F(JournalTest, WhatASubjectHadByItselfIsNotTakenForOneOfOurs) {
    auto journal = open();
    const Subject map = SteeringMask{"veth0", machine::Direction::rx, 0, "veth0", 7};
    ASSERT_TRUE(journal.put(map, {CpuSet{1}, CpuSet{1}, CpuSet{1}, "p"}));
    ASSERT_TRUE(journal.forget(map));
    EXPECT_FALSE(journal.recall(map, CpuSet{1}, CpuSet::range(0, 3)));
    ASSERT_TRUE(journal.put(map, {CpuSet{}, CpuSet{2}, CpuSet{2}, "p"}));
    ASSERT_TRUE(journal.forget(map));
    EXPECT_TRUE(journal.recall(map, CpuSet{2}, CpuSet::range(0, 3)));
}

TEST_F(JournalTest, WhatIsForgottenStaysForgotten) {
    {
        auto journal = open();
        for (const auto& subject : {task, irq, steering})
            ASSERT_TRUE(journal.remember(subject, CpuSet{0}, CpuSet{1}, "p"));
        ASSERT_TRUE(journal.forget(task));
        ASSERT_TRUE(journal.forget(steering));
        EXPECT_TRUE(journal.contents().held().threads().of(120).empty());
    }
    const auto journal = open();
    EXPECT_EQ(journal.size(), 1U);
    EXPECT_TRUE(journal.find(irq));
}

TEST_F(JournalTest, ARecycledNumberIsAnotherTask) {
    auto journal = open();
    ASSERT_TRUE(journal.remember(task, CpuSet{0}, CpuSet{1}, "p"));
    EXPECT_FALSE(journal.find(TaskMask{{123, 457}, 120, ""}));
}

TEST_F(JournalTest, TheRecordThatExplainsAnInheritedMaskIsFound) {
    auto journal = open();
    const CpuSet online = CpuSet::range(0, 3);
    ASSERT_TRUE(journal.remember(task, online, CpuSet{1}, "p"));
    EXPECT_EQ(journal.find_mask_source(120, CpuSet{1}, online), (MaskSource{online, "p"}));
    EXPECT_FALSE(journal.find_mask_source(120, CpuSet{2}, online)) << "a mask that we gave to no thread";
    EXPECT_FALSE(journal.find_mask_source(121, CpuSet{1}, online)) << "another process";
    ASSERT_TRUE(journal.forget(task));
    EXPECT_TRUE(journal.find_mask_source(120, CpuSet{1}, online))
        << "a child of a moment ago may be seen later";
    journal.mask_sources().age();
    EXPECT_TRUE(journal.contents().is_mask_source(120, 1));
    EXPECT_TRUE(journal.contents().is_mask_source(1, 120)) << "the parent may have passed it on";
    journal.mask_sources().age();
    EXPECT_FALSE(journal.find_mask_source(120, CpuSet{1}, online));
    EXPECT_FALSE(journal.contents().is_mask_source(120, 1));
}

TEST_F(JournalTest, AReplacedMaskStillExplainsChildrenOfBefore) {
    auto journal = open();
    const CpuSet online = CpuSet::range(0, 3);
    ASSERT_TRUE(journal.remember(task, online, CpuSet{1}, "p"));
    ASSERT_TRUE(journal.remember(task, online, CpuSet{2}, "p"));
    ASSERT_TRUE(journal.confirm(task, CpuSet{2}));
    EXPECT_EQ(journal.find_mask_source(120, CpuSet{1}, online), (MaskSource{online, "p"}));
    EXPECT_TRUE(journal.find_mask_source(120, CpuSet{2}, online));
    journal.mask_sources().age();
    journal.mask_sources().age();
    EXPECT_FALSE(journal.find_mask_source(120, CpuSet{1}, online));
    EXPECT_TRUE(journal.find_mask_source(120, CpuSet{2}, online)) << "present masks are passed on for ever";
}

TEST_F(JournalTest, WhatWasAskedForAndWhatWasGrantedBothExplainAMask) {
    auto journal = open();
    const CpuSet online = CpuSet::range(0, 3);
    ASSERT_TRUE(journal.remember(task, online, CpuSet{1, 2}, "p"));
    ASSERT_TRUE(journal.confirm(task, CpuSet{2}));
    EXPECT_TRUE(journal.find_mask_source(120, CpuSet{2}, online));
    EXPECT_TRUE(journal.find_mask_source(120, CpuSet{1, 2}, online));
}

TEST_F(JournalTest, TwoInterruptsWithOneLabelHaveTwoRecords) {
    const Subject first = IrqMask{"devices/platform/fd580000.ethernet", "eth0", 0, 37};
    const Subject second = IrqMask{"devices/platform/fd580000.ethernet", "eth0", 1, 38};
    {
        auto journal = open();
        ASSERT_TRUE(journal.remember(first, CpuSet{0}, CpuSet{2}, "p"));
        ASSERT_TRUE(journal.remember(second, CpuSet{1}, CpuSet{2}, "p"));
    }
    auto journal = open();
    ASSERT_TRUE(journal.find(first) && journal.find(second));
    EXPECT_EQ(journal.find(first)->original, CpuSet{0});
    EXPECT_EQ(journal.find(second)->original, CpuSet{1});
    ASSERT_TRUE(journal.forget(first));
    EXPECT_TRUE(open().find(second));
    EXPECT_FALSE(open().find(first));
}

TEST_F(JournalTest, AWalkInSlicesMeetsEveryRecordWhileRecordsGo) {
    auto journal = open();
    for (int i = 1; i <= 100; ++i)
        ASSERT_TRUE(
            journal.remember(TaskMask{{i, 1}, i % 7 + 1, "t"}, CpuSet{0}, CpuSet{1}, i % 2 ? "odd" : "even"));
    for (const auto& subject : {irq, steering})
        ASSERT_TRUE(journal.remember(subject, CpuSet{0}, CpuSet{1}, "odd"));
    std::size_t odd = 0;
    Journal::Cursor of_policy;
    while (journal.next(of_policy, "odd"))
        ++odd;
    EXPECT_EQ(odd, 52U);
    std::set<int> processes;
    std::size_t of_process = 0;
    while (const auto pid = journal.contents().held().threads().next_process(of_process))
        EXPECT_TRUE(processes.insert(*pid).second) << "each once";
    EXPECT_EQ(processes.size(), 7U);

    std::size_t met = 0;
    Journal::Cursor cursor;
    while (const auto entry = journal.next(cursor)) {
        ++met;
        ASSERT_TRUE(journal.forget(entry->subject)); // as a release does
    }
    EXPECT_EQ(met, 102U);
    EXPECT_EQ(journal.size(), 0U);
}

TEST_F(JournalTest, QueuesOfOneDeviceAreFoundWithoutTheOthers) {
    auto journal = open();
    const Subject other = SteeringMask{"devices/b", machine::Direction::rx, 0, "eth1"};
    const Subject table = FlowTable{device, 3, "eth0"};
    for (const auto& subject : {task, irq, steering, other, Subject{UnitCpuset{"a.service"}}})
        ASSERT_TRUE(journal.remember(subject, CpuSet{0}, CpuSet{1}, "p"));
    ASSERT_TRUE(journal.remember(table, FlowCount{0}, FlowCount{4096}, "p"));
    EXPECT_EQ(journal.queues().size(), 5U);
    EXPECT_EQ(journal.queues(device).size(), 3U);
    EXPECT_EQ(journal.queues("devices/b").size(), 1U);
}

TEST_F(JournalTest, CutAtAnyByteTheWholeLinesBeforeCount) {
    {
        auto journal = open();
        ASSERT_TRUE(journal.remember(irq, CpuSet{0}, CpuSet{1}, "p"));
        ASSERT_TRUE(journal.remember(task, CpuSet{3}, CpuSet{1}, "p"));
    }
    const auto whole = read_text(path());
    const auto first = whole.find('\n', header().size()) + 1;
    for (std::size_t length = 0; length <= whole.size(); ++length) {
        tree_.file("undo.journal", whole.substr(0, length));
        auto journal = open();
        EXPECT_EQ(journal.contains(irq), length >= first) << length;
        EXPECT_EQ(journal.contains(task), length == whole.size()) << length;
        EXPECT_TRUE(journal.remember(steering, CpuSet{0}, CpuSet{1}, "p"));
        EXPECT_TRUE(open().find(steering)) << "a torn line must not swallow the next one";
    }
}

TEST_F(JournalTest, DamageIsKnownUntilItIsMended) {
    {
        auto journal = open();
        ASSERT_TRUE(journal.remember(irq, CpuSet{0}, CpuSet{1}, "p"));
        ASSERT_TRUE(journal.remember(task, CpuSet{3}, CpuSet{1}, "p"));
        EXPECT_FALSE(journal.damaged());
    }
    EXPECT_FALSE(open().damaged());
    const auto whole = read_text(path());
    tree_.file("undo.journal", whole.substr(0, whole.size() - 1));
    EXPECT_TRUE(open().damaged());
    {
        auto journal = open();
        EXPECT_TRUE(journal.damaged()) << "the daemon that found it may have been killed";
        EXPECT_TRUE(journal.find(task));
        EXPECT_FALSE(journal.find(irq));
        ASSERT_TRUE(journal.mended());
        EXPECT_FALSE(journal.damaged());
        ASSERT_TRUE(journal.remember(irq, CpuSet{3}, CpuSet{1}, "p"));
    }
    EXPECT_FALSE(open().damaged());
    EXPECT_TRUE(open().find(irq));
}

TEST_F(JournalTest, DamageThatCannotBeMendedStaysKnown) {
    ASSERT_TRUE(open().remember(irq, CpuSet{0}, CpuSet{1}, "p"));
    const auto whole = read_text(path());
    tree_.file("undo.journal", whole + whole.substr(0, whole.size() / 2));
    auto full = std::make_optional<test::FullDisk>();
    auto journal = open();
    const auto mended = journal.mended();
    full.reset();
    EXPECT_FALSE(mended);
    EXPECT_TRUE(journal.damaged());
    EXPECT_TRUE(test::read_journal(path()).damaged());
    ASSERT_TRUE(journal.mended());
    ASSERT_TRUE(journal.remember(task, CpuSet{0}, CpuSet{1}, "p"));
    EXPECT_FALSE(open().damaged()) << "no line end is owed any more";
    EXPECT_TRUE(open().find(task));
    EXPECT_TRUE(open().find(irq));
}

TEST_F(JournalTest, WithAFullDiskAtTheStartTheOldFileStaysInUse) {
    ASSERT_TRUE(open().remember(irq, CpuSet{0}, CpuSet{1}, "p"));
    auto full = std::make_optional<test::FullDisk>();
    auto journal = open();
    const auto refused = journal.remember(task, CpuSet{0}, CpuSet{1}, "p");
    full.reset();
    EXPECT_FALSE(refused);
    EXPECT_TRUE(journal.find(irq)) << "what is there can be put back";
    ASSERT_TRUE(journal.remember(steering, CpuSet{0}, CpuSet{1}, "p")) << "room again";
    EXPECT_TRUE(open().find(irq));
    EXPECT_TRUE(open().find(steering));
}

TEST_F(JournalTest, HistoryIsDroppedAndTheFileStaysSmall) {
    auto journal = open();
    for (int i = 0; i < 20000; ++i)
        ASSERT_TRUE(journal.remember(task, CpuSet{0}, CpuSet{static_cast<unsigned>(i % 8)}, "p"));
    EXPECT_LT(std::filesystem::file_size(path()), 1U << 20);
    EXPECT_EQ(open().find(task)->asked, CpuSet{19999 % 8});
}

TEST_F(JournalTest, FewLinesOfLongMasksAreRewrittenToo) {
    std::string every_second;
    for (unsigned cpu = 0; cpu < 8192; cpu += 2)
        every_second += (cpu == 0 ? "" : ",") + std::to_string(cpu);
    const auto mask = *CpuSet::parse_list(every_second);
    auto journal = open();
    for (int i = 0; i < 1000; ++i)
        ASSERT_TRUE(journal.remember(task, mask, CpuSet{static_cast<unsigned>(i % 8)}, "p"));
    EXPECT_LT(std::filesystem::file_size(path()), 3U << 20) << "a thousand lines of 20 KB would be 20 MB";
    EXPECT_EQ(open().find(task)->original, machine::Setting{mask});
}

TEST_F(JournalTest, TheRewriteInSlicesLosesNothingAtAnyMoment) {
    constexpr int threads = 600;
    auto journal = open();
    const auto thread = [](int i) { return TaskMask{{i, 7}, 1, "t"}; };
    for (int i = 1; i <= threads; ++i)
        ASSERT_TRUE(journal.remember(thread(i), CpuSet{0}, CpuSet{1}, "p"));
    std::size_t largest = 0, rewrites = 0;
    for (int round = 0; round < 20; ++round)
        for (int i = 1; i <= threads; ++i) {
            const unsigned cpu = static_cast<unsigned>(2 + (round + i) % 9);
            if (i % 11 == round % 11)
                ASSERT_TRUE(journal.forget(thread(i)));
            else
                ASSERT_TRUE(journal.remember(thread(i), CpuSet{0}, CpuSet{cpu}, "p"));
            largest = std::max(largest, static_cast<std::size_t>(std::filesystem::file_size(path())));
            const bool is_rewriting = std::filesystem::exists(path() + ".new");
            rewrites += is_rewriting ? 1 : 0;
            if (i % 600 != 0 && !(is_rewriting && i % 9 == 0)) continue;
            // As a daemon that is killed now would leave it.
            const auto again = test::read_journal(path());
            ASSERT_EQ(again.size(), journal.size());
            EXPECT_FALSE(again.damaged());
            for (int j = 1; j <= threads; j += 7)
                ASSERT_EQ(again.find(thread(j)), journal.find(thread(j))) << j;
        }
    EXPECT_GT(rewrites, 40U) << "there were several, and each took several lines";
    EXPECT_LT(largest, 400000U) << "12,000 lines would be more";
}

TEST_F(JournalTest, ARewriteThatAKilledDaemonLeftDoesNoHarm) {
    ASSERT_TRUE(open().remember(irq, CpuSet{0}, CpuSet{1}, "p"));
    tree_.file("undo.journal.new", "half a li");
    auto journal = open();
    EXPECT_TRUE(journal.find(irq));
    EXPECT_FALSE(journal.damaged());
    for (int i = 0; i < 10000; ++i)
        ASSERT_TRUE(journal.remember(task, CpuSet{0}, CpuSet{static_cast<unsigned>(i % 8)}, "p"));
    EXPECT_EQ(open().size(), 2U);
    EXPECT_FALSE(open().damaged());
}

TEST_F(JournalTest, WithoutRoomForTheRewriteTheOldFileStaysInUse) {
    auto journal = open();
    for (int i = 0; i < 4090; ++i)
        ASSERT_TRUE(journal.remember(task, CpuSet{0}, CpuSet{static_cast<unsigned>(i % 8)}, "p"));
    tree_.folder("undo.journal.new/in the way"); // so that the rewrite cannot be begun
    for (int i = 0; i < 100; ++i)
        ASSERT_TRUE(journal.remember(task, CpuSet{0}, CpuSet{static_cast<unsigned>(i % 8)}, "p"));
    EXPECT_EQ(test::read_journal(path()).find(task)->asked, CpuSet{99 % 8});
    std::filesystem::remove_all(tree_.path("undo.journal.new"));
    for (int i = 0; i < 100; ++i)
        ASSERT_TRUE(journal.remember(task, CpuSet{0}, CpuSet{static_cast<unsigned>(i % 8)}, "p"));
    EXPECT_LT(std::filesystem::file_size(path()), 20000U);
    EXPECT_EQ(open().find(task)->asked, CpuSet{99 % 8});
}

TEST_F(JournalTest, APartOfALineIsCutOffAgain) {
    auto journal = open();
    ASSERT_TRUE(journal.remember(irq, CpuSet{0}, CpuSet{1}, "p"));
    auto full = std::make_optional<test::FullDisk>(std::filesystem::file_size(path()) + 10);
    const auto refused = journal.remember(task, CpuSet{0}, CpuSet{1}, "p");
    full.reset();
    EXPECT_FALSE(refused);
    EXPECT_FALSE(open().damaged()) << "a line that was refused is not lost";
}

TEST_F(JournalTest, AFullDiskIsAnErrorAndLosesNothing) {
    auto journal = open();
    ASSERT_TRUE(journal.remember(irq, CpuSet{0}, CpuSet{1}, "p"));
    // The journal's own descriptor stays on the old file; a file size limit makes its writes fail as a full
    // disk does.
    auto full = std::make_optional<test::FullDisk>(std::filesystem::file_size(path()) + 10);
    const auto refused = journal.remember(task, CpuSet{0}, CpuSet{1}, "p");
    full.reset();
    EXPECT_FALSE(refused);
    EXPECT_FALSE(journal.find(task)) << "what is not written down does not count";
    ASSERT_TRUE(journal.remember(steering, CpuSet{0}, CpuSet{1}, "p"));
    const auto again = open();
    EXPECT_TRUE(again.find(irq));
    EXPECT_TRUE(again.find(steering));
    EXPECT_FALSE(again.find(task));
}

TEST(JournalInMemory, WritesNothing) {
    auto journal = Journal::open("");
    ASSERT_TRUE(journal);
    ASSERT_TRUE(journal->remember(task, CpuSet{0}, CpuSet{1}, "p"));
    EXPECT_TRUE(journal->find(task));
}

TEST_F(JournalTest, WhatASubjectWasSetToBeforeAChangeIsKnownUntilThatIsConfirmed) {
    for (const auto& subject : {task, irq, steering}) {
        {
            auto journal = open();
            ASSERT_TRUE(journal.remember(subject, CpuSet::range(0, 3), CpuSet{1}, "p"));
            const planner::UndoRecord first{CpuSet::range(0, 3), CpuSet{1}, CpuSet{1}, "p",
                                            CpuSet::range(0, 3)};
            EXPECT_EQ(journal.find(subject), first);
            journal = open(); // the next daemon's
            EXPECT_EQ(journal.find(subject), first);
            ASSERT_TRUE(journal.confirm(subject, CpuSet{1}));
            ASSERT_TRUE(journal.remember(subject, CpuSet{1}, CpuSet{2}, "p"));
            EXPECT_EQ(journal.find(subject)->before, machine::Setting(CpuSet{1}));
        }
        for (int restart = 0; restart < 2; ++restart) { // each rewrites the file
            const auto again = open();
            EXPECT_FALSE(again.damaged());
            EXPECT_EQ(again.find(subject),
                      (planner::UndoRecord{CpuSet::range(0, 3), CpuSet{2}, CpuSet{2}, "p", CpuSet{1}}));
        }
        {
            auto journal = open();
            ASSERT_TRUE(journal.remember(subject, CpuSet{1}, CpuSet{2}, "p"));
            EXPECT_EQ(journal.find(subject)->before, machine::Setting(CpuSet{1})) << "it is still not known";
            ASSERT_TRUE(journal.confirm(subject, CpuSet{2}));
            EXPECT_FALSE(journal.find(subject)->before);
            EXPECT_FALSE(open().find(subject)->before) << "also to a later daemon";
            ASSERT_TRUE(journal.remember(subject, CpuSet{1}, CpuSet{3}, "p"));
            ASSERT_TRUE(journal.put(subject, {CpuSet::range(0, 3), CpuSet{2}, CpuSet{2}, "p"}));
        }
        const planner::UndoRecord reverted{CpuSet::range(0, 3), CpuSet{2}, CpuSet{2}, "p"};
        EXPECT_EQ(open().find(subject), reverted);
        ASSERT_TRUE(open().forget(subject));
        EXPECT_FALSE(open().find(subject));
    }
}

TEST_F(JournalTest, ChildrenOfATaskThatIsBeingMovedHaveEitherMaskFromUs) {
    auto journal = open();
    const auto online = CpuSet::range(0, 3);
    ASSERT_TRUE(journal.remember(task, online, CpuSet{1}, "p"));
    ASSERT_TRUE(journal.confirm(task, CpuSet{1}));
    ASSERT_TRUE(journal.remember(task, CpuSet{1}, CpuSet{2}, "p"));
    for (const unsigned cpu : {1U, 2U})
        EXPECT_TRUE(journal.find_mask_source(120, CpuSet{cpu}, online)) << cpu;
    ASSERT_TRUE(journal.confirm(task, CpuSet{2}));
    ASSERT_TRUE(journal.forget(task));
    for (int pass = 0; pass < 2; ++pass)
        journal.mask_sources().age();
    for (const unsigned cpu : {1U, 2U})
        EXPECT_FALSE(journal.find_mask_source(120, CpuSet{cpu}, online)) << cpu;
    EXPECT_EQ(journal.mask_sources().size(), 0U);
}

TEST_F(JournalTest, ChildrenOfATaskThatIsChangedForTheFirstTimeHaveItsOriginalFromNobody) {
    auto journal = open();
    const auto online = CpuSet::range(0, 3);
    ASSERT_TRUE(journal.remember(task, CpuSet{0, 3}, CpuSet{1}, "p"));
    EXPECT_FALSE(journal.find_mask_source(120, CpuSet{0, 3}, online));
    ASSERT_TRUE(journal.confirm(task, CpuSet{1}));
    EXPECT_FALSE(journal.find_mask_source(120, CpuSet{0, 3}, online));
    EXPECT_EQ(journal.mask_sources().size(), 1U);
}

TEST_F(JournalTest, WhatIsFoundToBeOursIsNoChangeThatIsUnderWay) {
    auto journal = open();
    ASSERT_TRUE(journal.put(task, {CpuSet::range(0, 3), CpuSet{1}, CpuSet{1}, "p"}));
    EXPECT_FALSE(journal.find(task)->before);
    journal = open();
    EXPECT_FALSE(journal.find(task)->before);
}

TEST_F(JournalTest, ATaskThatLivesOnWithoutItsRecordIsSettledUntilItIsGone) {
    {
        auto journal = open();
        ASSERT_TRUE(journal.remember(task, CpuSet{0}, CpuSet{1}, "p"));
        ASSERT_TRUE(journal.settle(task));
        EXPECT_FALSE(journal.find(task));
        EXPECT_TRUE(journal.contents().past().contains(TaskMask{{123, 456}, 0, {}}));
        EXPECT_FALSE(journal.contents().past().contains(TaskMask{{123, 457}, 0, {}}));
    }
    auto journal = open();
    EXPECT_TRUE(journal.contents().past().contains(TaskMask{{123, 456}, 0, {}}))
        << "also for the next daemon";
    ASSERT_TRUE(journal.forget(task));
    EXPECT_FALSE(journal.contents().past().contains(TaskMask{{123, 456}, 0, {}}));
    EXPECT_EQ(journal.contents().past().size(), 0U);
}

TEST_F(JournalTest, AFormerMaskDoesNotExplainThatOfAChildThatIsBornLater) {
    auto journal = open();
    const CpuSet online = CpuSet::range(0, 3);
    constexpr auto never = ~std::uint64_t{0};
    ASSERT_TRUE(journal.remember(task, online, CpuSet{1}, "p"));
    EXPECT_TRUE(journal.find_mask_source(120, CpuSet{1}, online, never)) << "a present mask";
    ASSERT_TRUE(journal.forget(task));
    EXPECT_TRUE(journal.find_mask_source(120, CpuSet{1}, online, 1));
    EXPECT_FALSE(journal.find_mask_source(120, CpuSet{1}, online, never));
}

TEST_F(JournalTest, WhenATaskHadAMaskIsKnownAfterRestartsToo) {
    const CpuSet online = CpuSet::range(0, 3);
    constexpr auto never = ~std::uint64_t{0};
    {
        auto journal = open();
        ASSERT_TRUE(journal.remember(task, online, CpuSet{1, 2}, "p", 500));
        ASSERT_TRUE(journal.confirm(task, CpuSet{1}));
    }
    const auto explains = [&](Journal& journal, std::uint64_t born) {
        return journal.find_mask_source(120, CpuSet{1}, online, born).has_value();
    };
    for (int restart = 0; restart < 2; ++restart) { // each rewrites the file
        auto journal = open();
        EXPECT_FALSE(explains(journal, 499)) << "its parent had no such mask yet";
        EXPECT_TRUE(explains(journal, 500));
        EXPECT_TRUE(explains(journal, never)) << "it has it still";
    }
    {
        auto journal = open();
        ASSERT_TRUE(journal.settle(task));
    }
    for (int restart = 0; restart < 3; ++restart) {
        auto journal = open();
        EXPECT_TRUE(explains(journal, host::ticks_since_boot() - 1)) << "its parent had it when it was born";
        EXPECT_FALSE(explains(journal, never));
    }
}

} // namespace
} // namespace affinityd::state
