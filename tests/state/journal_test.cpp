// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "state/journal.hpp"
#include "state/record.hpp"
#include "support/full_disk.hpp"
#include "support/tree.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace affinityd::state {
namespace {

using machine::FlowCount;
using machine::FlowTable;
using machine::IrqMask;
using machine::KernelMask;
using machine::SteeringMask;
using machine::Subject;
using machine::TaskMask;
using machine::UnitCpuset;
using planner::UndoRecord;

constexpr const char* device = "devices/pci0000:00/0000:00:03.0";
const CpuSet all = CpuSet::range(0, 3);
const Subject task = TaskMask{{123, 456}, 120, "a\tname\nwith %41 bytes"};
const Descent descent{"/system.slice/a b.service", 77};

/// A subject of each kind, with a record.
const std::vector<std::pair<Subject, UndoRecord>> kinds{
    {task, {all, CpuSet{1}, CpuSet{1}, "p", CpuSet{2}}},
    {TaskMask{{124, 457}, 120, "b"}, {all, CpuSet{1}, CpuSet{}, "policy\twith tab"}},
    {IrqMask{device, "eth0-TxRx-0", 0, 40}, {all, CpuSet{1}, CpuSet{1}, "p"}},
    {IrqMask{device, "eth0-TxRx-0", 1, 41}, {all, CpuSet{2}, CpuSet{2}, "p"}},
    {IrqMask{"", "", 0, 9, true}, {all, CpuSet{3}, CpuSet{3}, "p"}},
    {SteeringMask{device, machine::Direction::tx, 0, "eth0", 2}, {CpuSet{}, CpuSet{1}, CpuSet{1}, "p"}},
    {SteeringMask{device, machine::Direction::rx, 0, "p1", 3, true}, {CpuSet{}, CpuSet{1}, CpuSet{1}, "p"}},
    {FlowTable{device, 3, "eth0", 2}, {FlowCount{0}, FlowCount{4096}, FlowCount{4096}, "p"}},
    {UnitCpuset{"nginx.service"}, {CpuSet{}, CpuSet{1}, CpuSet{1}, "p"}},
    {KernelMask{KernelMask::Of::interrupts}, {all, CpuSet{1}, CpuSet{1}, "p"}},
    {KernelMask{KernelMask::Of::work}, {all, CpuSet{2}, CpuSet{2}, "p"}},
};

class JournalTest : public testing::Test {
  protected:
    [[nodiscard]] std::string path() const { return tree_.path("undo.journal"); }
    [[nodiscard]] Journal open() const {
        auto journal = Journal::open(path());
        EXPECT_TRUE(journal) << journal.error().to_string();
        return std::move(*journal);
    }
    [[nodiscard]] Journal open(const std::string& bytes) const {
        std::ofstream(path(), std::ios::binary | std::ios::trunc) << bytes;
        return open();
    }
    [[nodiscard]] std::string text() const {
        std::stringstream text;
        text << std::ifstream(path(), std::ios::binary).rdbuf();
        return text.str();
    }
    static void put(Journal& journal, const Subject& subject, const UndoRecord& record) {
        ASSERT_TRUE(journal.put(subject, record, &descent, 1000));
    }
    std::string good_file() const {
        std::filesystem::remove(path());
        auto journal = open();
        for (const auto& [subject, record] : kinds)
            put(journal, subject, record);
        return text();
    }
    /// Whatever a file says, no subject has another record than it was given.
    static void expect_no_other_record(const Journal& journal, const std::string& what) {
        std::size_t count = 0;
        for (const auto& [subject, record] : kinds)
            if (const auto found = journal.find(subject)) {
                ++count;
                ASSERT_EQ(*found, record) << what << ": " << machine::to_string(subject);
            }
        ASSERT_EQ(journal.size(), count) << what;
    }
    test::Tree tree_;
};

TEST_F(JournalTest, ReadsWhatItWrote) {
    good_file();
    const auto journal = open();
    EXPECT_FALSE(journal.damaged());
    EXPECT_TRUE(journal.faults().empty());
    expect_no_other_record(journal, "whole");
    EXPECT_EQ(journal.size(), kinds.size());
    EXPECT_EQ(journal.threads(120), (std::vector<TaskId>{{123, 456}, {124, 457}}));
    EXPECT_EQ(journal.queues().size(), kinds.size() - 2);
    EXPECT_EQ(journal.queues(device).size(), kinds.size() - 6);
}

TEST_F(JournalTest, DropsTruncatedLinesOnly) {
    const auto good = good_file();
    for (std::size_t size = 0; size < good.size(); ++size) {
        const auto journal = open(good.substr(0, size));
        const bool is_inside = good[size == 0 ? 0 : size - 1] != '\n' && size > header().size();
        if (size >= header().size()) {
            ASSERT_EQ(journal.damaged(), is_inside) << size;
        }
        expect_no_other_record(journal, "cut at " + std::to_string(size));
    }
}

TEST_F(JournalTest, DropsFlippedLinesOnly) {
    const auto good = good_file();
    for (std::size_t at = 0; at < good.size(); ++at) {
        auto bytes = good;
        bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1U << at % 8));
        const auto journal = open(bytes);
        expect_no_other_record(journal, "flipped at " + std::to_string(at));
        ASSERT_TRUE(journal.damaged() || !journal.faults().empty()) << at;
        ASSERT_GE(journal.size(), kinds.size() - 2) << "at most the lines that it touches are lost";
    }
}

TEST_F(JournalTest, ReadsOddLinesAsDamage) {
    const auto good = good_file();
    const auto line = [](std::string_view fields) {
        LineWriter writer("task");
        for (const auto field : split(fields, ' '))
            writer.plain(field);
        return writer.finish();
    };
    const struct {
        const char* what;
        std::string added;
        bool is_damage;
    } cases[] = {
        {"duplicated", good, false},
        {"a line of a megabyte", std::string(1U << 20, 'a') + '\n', true},
        {"bytes of all kinds", std::string("\0\xff\t\t\t\x01\n", 8), true},
        {"a CPU that no kernel has", line("1 2 3 n held 0 0 0-4294967295 1 1 - p / 1"), true},
        {"a task without a number", line("0 2 0 n held 0 0 0 1 1 - p / 1"), true},
        {"a standing that is not known", line("1 2 3 n odd 0 0 0 1 1 - p / 1"), true},
        {"too few fields", line("1 2 3 n held 0 0 0 1 1 - p /"), true},
        {"too many fields", line("1 2 3 n held 0 0 0 1 1 - p / 1 1 1"), true},
        {"an earlier mask that is none", line("1 2 3 n held 0 0 0 1 1 - p / 1 1;x"), true},
    };
    for (const auto& [what, added, is_damage] : cases) {
        auto journal = open(good + added);
        EXPECT_EQ(journal.damaged(), is_damage) << what;
        EXPECT_EQ(journal.size(), kinds.size()) << what;
        expect_no_other_record(journal, what);
        if (!is_damage) continue;
        EXPECT_TRUE(open().damaged()) << what << ": a later daemon knows it, too";
        ASSERT_TRUE(journal.mended());
    }
}

TEST_F(JournalTest, DropsAFileOfAnotherBootAndPutsAsideOneThatIsNone) {
    auto good = good_file();
    const auto other = LineWriter("of boot another").finish();
    EXPECT_EQ(open(other + good.substr(good.find('\n') + 1)).size(), 0U);
    std::filesystem::remove(path());
    std::filesystem::create_directory(path());
    EXPECT_TRUE(open().damaged());
    EXPECT_TRUE(std::filesystem::is_directory(path() + ".unreadable"));
}

TEST_F(JournalTest, KeepsStandingsOverRestarts) {
    good_file();
    {
        auto journal = open();
        ASSERT_TRUE(journal.part(task, Standing::back, 2000));
        ASSERT_TRUE(journal.part(kinds[1].first, Standing::gone, 3000));
        ASSERT_TRUE(journal.part(kinds[2].first, Standing::kept));
        ASSERT_TRUE(journal.part(kinds[3].first, Standing::back));
        ASSERT_TRUE(journal.drop(kinds[4].first));
    }
    auto journal = open();
    EXPECT_EQ(journal.size(), kinds.size() - 5);
    EXPECT_EQ(journal.find_past(task)->standing, Standing::back);
    EXPECT_EQ(journal.find_past(task)->until, 2000U);
    EXPECT_EQ(journal.find_past(kinds[1].first)->standing, Standing::gone);
    EXPECT_EQ(journal.find_past(kinds[2].first)->standing, Standing::kept);
    EXPECT_EQ(journal.find_past(kinds[3].first), nullptr) << "an interrupt has no children";
    EXPECT_EQ(journal.find_past(kinds[4].first), nullptr);
    journal.drop_gone(3001);
    EXPECT_EQ(journal.find_past(kinds[1].first), nullptr);
    EXPECT_NE(journal.find_past(task), nullptr);
}

TEST_F(JournalTest, ExplainsMasksOfTheTimeInWhichTheCreatorHadThem) {
    auto journal = open();
    put(journal, task, {CpuSet{0}, all, CpuSet::range(0, 2), "p", CpuSet{3}}); // since 1000
    put(journal, TaskMask{{200, 1}, 200, "ended"}, {CpuSet{0}, CpuSet{1}, CpuSet{1}, "p"});
    ASSERT_TRUE(journal.part(TaskMask{{200, 1}, 200, {}}, Standing::gone, 2000));
    const Descent same_group{descent.group, 5}, same_session{"/other", 77}, other{"/", 1};
    const struct {
        int creator;
        CpuSet mask;
        std::uint64_t born;
        bool is_explained;
    } cases[] = {
        {120, all, 1000, true},                 // asked
        {120, CpuSet::range(0, 2), 1000, true}, // granted
        {120, CpuSet{3}, 1001, true},           // before
        {120, CpuSet{0}, 1001, false},          // its own
        {120, CpuSet{1, 2}, 1001, false},       // another one
        {120, all, 999, false},                 // born before it was given
        {121, all, 1000, false},                // of another creator
        {200, CpuSet{1}, 2000, true},           // that has ended since
        {200, CpuSet{1}, 2001, false},          // that had ended
    };
    for (const auto& [creator, mask, born, is_explained] : cases)
        EXPECT_EQ(journal.explain(creator, mask, all, born) != nullptr, is_explained)
            << creator << ": " << mask.to_list() << " at " << born;
    EXPECT_NE(journal.explain(120, CpuSet{0, 1, 2}, CpuSet{0, 1}, 1000), nullptr)
        << "offline CPUs do not count";
    EXPECT_NE(journal.explain(same_group, CpuSet{1}, all, 1500), nullptr);
    EXPECT_NE(journal.explain(same_session, CpuSet{1}, all, 1500), nullptr);
    EXPECT_EQ(journal.explain(other, CpuSet{1}, all, 1500), nullptr);
    EXPECT_TRUE(journal.is_mask_of_ours(CpuSet{3}, all));
    EXPECT_FALSE(journal.is_mask_of_ours(CpuSet{0}, all));
}

TEST_F(JournalTest, ExplainsChildrenByMasksThatTheirCreatorHadEarlier) {
    const auto with = [](unsigned cpu) { return UndoRecord{all, CpuSet{cpu}, CpuSet{cpu}, "p"}; };
    const auto is_explained = [](const Journal& journal, unsigned cpu) {
        return journal.explain(120, CpuSet{cpu}, CpuSet::range(0, 15), 2000) != nullptr;
    };
    auto journal = open();
    for (const unsigned cpu : {4U, 5U, 4U, 6U})
        put(journal, task, with(cpu));
    put(journal, task, {all, all, all, "p"}); // as before, but not restored
    for (int restarts = 0; restarts < 2; ++restarts, journal = open()) {
        for (const unsigned cpu : {4U, 5U, 6U})
            EXPECT_TRUE(is_explained(journal, cpu)) << cpu;
        EXPECT_FALSE(is_explained(journal, 7));
        EXPECT_EQ(journal.explain(120, all, all, 2000), nullptr);
    }
    for (unsigned cpu = 7; cpu < 15; ++cpu)
        put(journal, task, with(cpu));
    EXPECT_FALSE(is_explained(journal, 5));
    EXPECT_TRUE(is_explained(journal, 6));
}

TEST_F(JournalTest, ReadsLinesOfVersionsThatKeptNoEarlierMasks) {
    LineWriter line("task");
    line.number(123).number(456).number(120).plain("a").plain("held").number(1000).number(0);
    line.plain("0-3").plain("1").plain("1").plain("-").plain("p").plain("/group").number(77);
    const auto journal = open(header() + line.finish());
    EXPECT_FALSE(journal.damaged());
    ASSERT_TRUE(journal.find(task));
    EXPECT_EQ(*journal.find(task), (UndoRecord{all, CpuSet{1}, CpuSet{1}, "p"}));
}

TEST_F(JournalTest, FindsSubjectsUnderNewNames) {
    auto journal = open();
    const Subject before = SteeringMask{"veth0", machine::Direction::rx, 0, "veth0", 7};
    const Subject renamed = SteeringMask{"veth1", machine::Direction::rx, 0, "veth1", 7};
    const Subject namesake = SteeringMask{"veth0", machine::Direction::rx, 0, "veth0", 8};
    put(journal, before, {CpuSet{}, CpuSet{1}, CpuSet{1}, "p"});
    EXPECT_TRUE(journal.find(renamed));
    EXPECT_FALSE(journal.find(namesake));
    EXPECT_EQ(journal.find_entry(renamed)->subject, before);
    const Subject line = IrqMask{device, "eth0-rx-0", 0, 40};
    put(journal, line, {all, CpuSet{1}, CpuSet{1}, "p"});
    EXPECT_EQ(journal.find_at_number(IrqMask{device, "lan0-rx-0", 0, 40})->subject, line);
    EXPECT_FALSE(journal.find_at_number(IrqMask{device, "lan0-rx-0", 0, 41}));
}

TEST_F(JournalTest, StaysSmall) {
    std::uintmax_t largest = 0;
    {
        auto journal = open();
        for (int round = 0; round < 20000; ++round) {
            const Subject one = TaskMask{{1 + round % 50, 1}, 1 + round % 50, "n"};
            put(journal, one, {all, CpuSet{static_cast<unsigned>(round % 3)}, CpuSet{1}, "p"});
            if (round % 1000 == 0) { // as a pass does
                EXPECT_TRUE(journal.look_after_file([] { return false; }));
            }
            if (round % 100 == 0) largest = std::max(largest, std::filesystem::file_size(path()));
        }
    }
    EXPECT_LT(largest, 2U << 20);
    EXPECT_EQ(open().size(), 50U);
}

TEST_F(JournalTest, ChangesNothingWhereItCannotBeWritten) {
    good_file();
    auto journal = open();
    {
        const test::FullDisk full;
        EXPECT_FALSE(journal.put(task, {all, CpuSet{3}, CpuSet{3}, "q"}));
        EXPECT_FALSE(journal.put(TaskMask{{9, 9}, 9, ""}, {all, CpuSet{3}, CpuSet{3}, "q"}));
    }
    expect_no_other_record(journal, "in memory");
    expect_no_other_record(open(), "on disk");
}

TEST_F(JournalTest, IsWrittenAnewWhereItWasRemoved) {
    good_file();
    auto journal = open();
    std::filesystem::remove(path());
    EXPECT_TRUE(journal.look_after_file([] { return false; }));
    expect_no_other_record(open(), "written anew");
    EXPECT_EQ(open().size(), kinds.size());
}

} // namespace
} // namespace affinityd::state
