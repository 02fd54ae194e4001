// SPDX-License-Identifier: Apache-2.0
#include "state/journal.hpp"
#include "state/record.hpp"
#include "support/full_disk.hpp"
#include "support/tree.hpp"

#include <optional>
#include <sstream>

#include <gtest/gtest.h>

namespace affinityd::state {
namespace {

using planner::Held;
using planner::IrqMask;
using planner::SteeringMask;
using planner::Subject;
using planner::TaskMask;

const Subject task = TaskMask{{123, 456}, 120, "a\tname\nwith %41 bytes"};
const Subject irq = IrqMask{"devices/pci0000:00/0000:00:03.0", "eth0-TxRx-0", 40};
const Subject steering = SteeringMask{"devices/pci0000:00/0000:00:03.0", "eth0", "tx-0"};

std::string read_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

std::string only_line(const Record& record) {
    auto line = to_line(record);
    EXPECT_EQ(line.back(), '\n');
    line.pop_back();
    EXPECT_EQ(line.find('\n'), std::string::npos) << "hostile names must not make lines";
    return line;
}

TEST(Record, EveryKindOfSubjectSurvivesTheWayThroughText) {
    const Held held{CpuSet::range(0, 7), CpuSet{1}, CpuSet{}, "policy\twith tab"};
    for (const auto& subject : {task, irq, steering}) {
        const auto back = parse_line(only_line({subject, held}));
        ASSERT_TRUE(back);
        EXPECT_EQ(back->subject, subject);
        ASSERT_TRUE(back->held);
        EXPECT_EQ(*back->held, held);
        const auto gone = parse_line(only_line({subject, std::nullopt}));
        ASSERT_TRUE(gone);
        EXPECT_FALSE(gone->held);
    }
    EXPECT_EQ(std::get<TaskMask>(parse_line(only_line({task, held}))->subject).comm,
              std::get<TaskMask>(task).comm);
}

TEST(Record, ALineCutAnywhereIsNoLine) {
    const auto line = only_line({irq, Held{CpuSet{0}, CpuSet{1}, CpuSet{1}, "p"}});
    ASSERT_TRUE(parse_line(line));
    for (std::size_t length = 0; length < line.size(); ++length)
        EXPECT_FALSE(parse_line(line.substr(0, length))) << length;
    for (std::size_t at = 0; at < line.size(); ++at) {
        auto damaged = line;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        EXPECT_FALSE(parse_line(damaged)) << at;
    }
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
    const auto* held = journal.find(task);
    ASSERT_NE(held, nullptr);
    EXPECT_EQ(held->original, CpuSet::range(0, 3));
    EXPECT_EQ(held->asked, CpuSet{2});
    EXPECT_EQ(held->policy, "q");
    EXPECT_TRUE(journal.holds_process(120));
    EXPECT_FALSE(journal.holds_process(123));
}

TEST_F(JournalTest, WhatIsForgottenStaysForgotten) {
    {
        auto journal = open();
        for (const auto& subject : {task, irq, steering})
            ASSERT_TRUE(journal.remember(subject, CpuSet{0}, CpuSet{1}, "p"));
        ASSERT_TRUE(journal.forget(task));
        ASSERT_TRUE(journal.forget(steering));
        EXPECT_FALSE(journal.holds_process(120));
    }
    const auto journal = open();
    EXPECT_EQ(journal.size(), 1U);
    EXPECT_NE(journal.find(irq), nullptr);
}

TEST_F(JournalTest, ARecycledNumberIsAnotherTask) {
    auto journal = open();
    ASSERT_TRUE(journal.remember(task, CpuSet{0}, CpuSet{1}, "p"));
    EXPECT_EQ(journal.find(TaskMask{{123, 457}, 120, ""}), nullptr);
    EXPECT_NE(journal.find(IrqMask{"d", "l", 1}), journal.find(task));
}

TEST_F(JournalTest, FindsWhoGaveANewbornItsMask) {
    auto journal = open();
    const CpuSet online = CpuSet::range(0, 3);
    ASSERT_TRUE(journal.remember(task, online, CpuSet{1}, "p"));
    ASSERT_NE(journal.find_giver(120, CpuSet{1}, online), nullptr);
    EXPECT_EQ(journal.find_giver(120, CpuSet{1}, online)->original, online);
    EXPECT_EQ(journal.find_giver(120, CpuSet{2}, online), nullptr) << "a mask that nobody was given";
    EXPECT_EQ(journal.find_giver(121, CpuSet{1}, online), nullptr) << "another process";
    ASSERT_TRUE(journal.forget(task));
    EXPECT_NE(journal.find_giver(120, CpuSet{1}, online), nullptr)
        << "what it created a moment ago may be seen later";
    journal.age_givers();
    EXPECT_TRUE(journal.is_giver(120, 1));
    journal.age_givers();
    EXPECT_EQ(journal.find_giver(120, CpuSet{1}, online), nullptr);
    EXPECT_FALSE(journal.is_giver(120, 1));
}

TEST_F(JournalTest, AMaskThatWasReplacedWasGivenOnToo) {
    auto journal = open();
    const CpuSet online = CpuSet::range(0, 3);
    ASSERT_TRUE(journal.remember(task, online, CpuSet{1}, "p"));
    ASSERT_TRUE(journal.remember(task, online, CpuSet{2}, "p"));
    ASSERT_NE(journal.find_giver(120, CpuSet{1}, online), nullptr)
        << "its child of before may be seen after the change";
    EXPECT_EQ(journal.find_giver(120, CpuSet{1}, online)->original, online);
    ASSERT_NE(journal.find_giver(120, CpuSet{2}, online), nullptr);
    journal.age_givers();
    journal.age_givers();
    EXPECT_EQ(journal.find_giver(120, CpuSet{1}, online), nullptr);
    EXPECT_NE(journal.find_giver(120, CpuSet{2}, online), nullptr) << "what it has it gives on";
}

TEST_F(JournalTest, CutAtAnyByteTheWholeLinesBeforeCount) {
    {
        auto journal = open();
        ASSERT_TRUE(journal.remember(irq, CpuSet{0}, CpuSet{1}, "p"));
        ASSERT_TRUE(journal.remember(task, CpuSet{3}, CpuSet{1}, "p"));
    }
    const auto whole = read_text(path());
    const auto first = whole.find('\n') + 1;
    for (std::size_t length = 0; length <= whole.size(); ++length) {
        tree_.file("undo.journal", whole.substr(0, length));
        auto journal = open();
        EXPECT_EQ(journal.find(irq) != nullptr, length >= first) << length;
        EXPECT_EQ(journal.find(task) != nullptr, length == whole.size()) << length;
        EXPECT_TRUE(journal.remember(steering, CpuSet{0}, CpuSet{1}, "p"));
        EXPECT_NE(open().find(steering), nullptr) << "a torn line must not swallow the next one";
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
        EXPECT_NE(journal.find(task), nullptr);
        EXPECT_EQ(journal.find(irq), nullptr);
        ASSERT_TRUE(journal.mended());
        EXPECT_FALSE(journal.damaged());
        ASSERT_TRUE(journal.remember(irq, CpuSet{3}, CpuSet{1}, "p"));
    }
    EXPECT_FALSE(open().damaged());
    EXPECT_NE(open().find(irq), nullptr);
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
    EXPECT_TRUE(open().damaged());
    ASSERT_TRUE(journal.mended());
    ASSERT_TRUE(journal.remember(task, CpuSet{0}, CpuSet{1}, "p"));
    EXPECT_FALSE(open().damaged()) << "no line end is owed any more";
    EXPECT_NE(open().find(task), nullptr);
    EXPECT_NE(open().find(irq), nullptr);
}

TEST_F(JournalTest, ADiskThatIsFullAtTheStartIsGoneOnWith) {
    ASSERT_TRUE(open().remember(irq, CpuSet{0}, CpuSet{1}, "p"));
    auto full = std::make_optional<test::FullDisk>();
    auto journal = open();
    const auto refused = journal.remember(task, CpuSet{0}, CpuSet{1}, "p");
    full.reset();
    EXPECT_FALSE(refused);
    EXPECT_NE(journal.find(irq), nullptr) << "what is there can be put back";
    ASSERT_TRUE(journal.remember(steering, CpuSet{0}, CpuSet{1}, "p")) << "room again";
    EXPECT_NE(open().find(irq), nullptr);
    EXPECT_NE(open().find(steering), nullptr);
}

TEST_F(JournalTest, HistoryIsDroppedAndTheFileStaysSmall) {
    auto journal = open();
    for (int i = 0; i < 20000; ++i)
        ASSERT_TRUE(journal.remember(task, CpuSet{0}, CpuSet{static_cast<unsigned>(i % 8)}, "p"));
    EXPECT_LT(std::filesystem::file_size(path()), 1U << 20);
    EXPECT_EQ(open().find(task)->asked, CpuSet{19999 % 8});
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
    EXPECT_EQ(journal.find(task), nullptr) << "what is not written down does not count";
    ASSERT_TRUE(journal.remember(steering, CpuSet{0}, CpuSet{1}, "p"));
    const auto again = open();
    EXPECT_NE(again.find(irq), nullptr);
    EXPECT_NE(again.find(steering), nullptr);
    EXPECT_EQ(again.find(task), nullptr);
}

TEST(JournalInMemory, WritesNothing) {
    auto journal = Journal::open("");
    ASSERT_TRUE(journal);
    ASSERT_TRUE(journal->remember(task, CpuSet{0}, CpuSet{1}, "p"));
    EXPECT_NE(journal->find(task), nullptr);
}

} // namespace
} // namespace affinityd::state
