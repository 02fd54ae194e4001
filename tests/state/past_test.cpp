// SPDX-License-Identifier: Apache-2.0
// What the journal knows of subjects that have no record in force.
#include "device.hpp"
#include "state/journal.hpp"
#include "state/journal_marks.hpp"
#include "support/full_disk.hpp"
#include "support/tree.hpp"

#include <filesystem>
#include <fstream>

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

/// A subject with its original, what we gave it, and what somebody else did.
struct Case {
    Subject subject;
    Setting original, granted, foreign;
};

std::vector<Case> cases() {
    const Setting all = CpuSet::range(0, 3);
    const Setting off = CpuSet{};
    return {{TaskMask{{123, 456}, 120, "worker"}, all, CpuSet{1}, CpuSet{2}},
            {IrqMask{device, "eth0-TxRx-0", 0, 40}, all, CpuSet{1}, CpuSet{2}},
            {SteeringMask{device, machine::Direction::tx, 0, "eth0"}, off, CpuSet{1}, CpuSet{2}},
            {FlowTable{device, 1, "eth0"}, FlowCount{0}, FlowCount{4096}, FlowCount{64}},
            {UnitCpuset{"nginx.service"}, off, CpuSet{1}, CpuSet{2}}};
}

class Past : public testing::Test {
  protected:
    [[nodiscard]] Journal open() const {
        auto journal = Journal::open(path());
        if (!journal) throw std::runtime_error(journal.error().to_string());
        return std::move(*journal);
    }
    [[nodiscard]] std::string path() const { return tree_.path("undo.journal"); }
    static void change(Journal& journal, const Case& one) {
        ASSERT_TRUE(journal.remember(one.subject, one.original, one.granted, "p"));
        ASSERT_TRUE(journal.confirm(one.subject, one.granted));
    }
    /// Many changes of one task.
    static void churn(Journal& journal, int lines) {
        const TaskMask other{{7, 8}, 7, "other"};
        for (int i = 0; i < lines; ++i)
            ASSERT_TRUE(
                journal.remember(other, CpuSet::range(0, 3), CpuSet{static_cast<unsigned>(i % 2)}, "p"));
        ASSERT_TRUE(journal.forget(other));
    }
    test::Tree tree_;
    const CpuSet online_ = CpuSet::range(0, 3);
};

TEST_F(Past, TheNextDaemonKnowsTheOriginalOfWhatWasKept) {
    {
        auto journal = open();
        for (const auto& one : cases()) {
            change(journal, one);
            ASSERT_TRUE(journal.settle(one.subject, Parting::kept));
        }
        EXPECT_EQ(journal.size(), 0U);
    }
    const auto journal = open();
    EXPECT_FALSE(journal.damaged());
    EXPECT_EQ(journal.size(), 0U);
    EXPECT_EQ(journal.contents().past().kept().size(), cases().size());
    for (const auto& one : cases()) {
        const auto ours = journal.recall(one.subject, one.granted, online_);
        ASSERT_TRUE(ours) << to_string(one.subject);
        EXPECT_EQ(ours->original, one.original) << to_string(one.subject);
        EXPECT_FALSE(journal.recall(one.subject, one.foreign, online_)) << to_string(one.subject);
    }
}

TEST_F(Past, WhatWasPutBackAndComesBackIsOurs) {
    auto journal = open();
    for (const auto& one : cases()) {
        change(journal, one);
        ASSERT_TRUE(journal.settle(one.subject));
        EXPECT_FALSE(journal.recall(one.subject, one.original, online_)) << to_string(one.subject);
        ASSERT_TRUE(journal.recall(one.subject, one.granted, online_)) << to_string(one.subject);
        ASSERT_TRUE(journal.remember(one.subject, one.granted, one.foreign, "q"));
        EXPECT_EQ(journal.find(one.subject)->original, one.original) << "and no original";
    }
}

TEST_F(Past, EveryMaskThatWasEverGrantedIsKnownWithoutTheJournal) {
    {
        auto journal = open();
        for (const auto& one : cases()) {
            change(journal, one);
            ASSERT_TRUE(journal.remember(one.subject, one.granted, one.foreign, "p"));
        }
    }
    std::filesystem::remove(path());
    const auto journal = open();
    for (const auto& one : cases()) {
        for (const auto& setting : {one.granted, one.foreign}) {
            const auto ours = journal.recall(one.subject, setting, online_);
            ASSERT_TRUE(ours) << to_string(one.subject);
            EXPECT_FALSE(ours->original) << "nobody knows it any more";
        }
        EXPECT_FALSE(journal.recall(one.subject, one.original, online_)) << to_string(one.subject);
    }
    EXPECT_FALSE(journal.recall(TaskMask{{123, 457}, 120, "worker"}, CpuSet{1}, online_))
        << "another task of this number";
}

TEST_F(Past, ATornLineOfGrantedMasksCostsNoOther) {
    {
        auto journal = open();
        for (const auto& one : cases())
            change(journal, one);
    }
    std::filesystem::remove(path());
    std::filesystem::resize_file(path() + ".granted", std::filesystem::file_size(path() + ".granted") - 3);
    std::ofstream(path() + ".granted", std::ios::app) << "garbage\n";
    const auto journal = open();
    const auto all = cases();
    unsigned known = 0;
    for (const auto& one : all)
        known += journal.recall(one.subject, one.granted, online_) ? 1 : 0;
    EXPECT_EQ(known, all.size() - 1);
}

TEST_F(Past, MasksOfAJournalThatIsOlderThanTheFileOfGrantedOnesAreNoted) {
    const auto one = cases().front();
    {
        auto journal = open();
        change(journal, one);
    }
    std::filesystem::remove(path() + ".granted");
    EXPECT_EQ(open().size(), 1U);
    std::filesystem::remove(path());
    EXPECT_TRUE(open().recall(one.subject, one.granted, online_));
}

TEST_F(Past, WhatWasKeptAndGrantedSurvivesThatFilesAreRewritten) {
    const auto all = cases();
    {
        auto journal = open();
        for (const auto& one : all) {
            change(journal, one);
            ASSERT_TRUE(journal.settle(one.subject, Parting::kept));
        }
        churn(journal, 20'000);
    }
    EXPECT_LT(std::filesystem::file_size(path()), 5000U * 120) << "it was rewritten";
    {
        const auto journal = open();
        for (const auto& one : all)
            EXPECT_EQ(journal.recall(one.subject, one.granted, online_)->original, one.original);
    }
    std::filesystem::remove(path());
    const auto journal = open();
    for (const auto& one : all)
        EXPECT_TRUE(journal.recall(one.subject, one.granted, online_)) << to_string(one.subject);
}

TEST_F(Past, FilesThatWereRemovedOrCutAreWrittenAnew) {
    const auto all = cases();
    auto journal = open();
    for (const auto& one : all)
        change(journal, one);
    journal = open(); // written anew, with one line for each
    const auto written = std::filesystem::file_size(path());
    const auto never = [] { return false; };
    EXPECT_TRUE(journal.look_after_files(never));
    const auto granted = header().size() + (all.size() + 1) * 18; // the interrupt has a place, too
    for (const auto& file : {path(), path() + ".granted"}) {
        for (const bool is_cut : {false, true}) {
            if (is_cut)
                std::filesystem::resize_file(file, 10);
            else
                std::filesystem::remove(file);
            EXPECT_TRUE(journal.look_after_files(never));
            EXPECT_EQ(std::filesystem::file_size(path()), written) << file << is_cut;
            EXPECT_EQ(std::filesystem::file_size(path() + ".granted"), granted) << file << is_cut;
        }
    }
    change(journal, {TaskMask{{9, 9}, 9, "late"}, online_, CpuSet{3}, {}});
    EXPECT_GT(std::filesystem::file_size(path()), written) << "what comes later goes there, too";
}

class RemovedFolder : public Past {
  protected:
    void SetUp() override {
        change(journal_, one_);
        std::filesystem::remove_all(folder());
    }
    [[nodiscard]] std::string folder() const { return tree_.path("run"); }
    [[nodiscard]] Journal open_there() const { return Journal::open(folder() + "/undo.journal").value(); }
    void expect_no_change() {
        EXPECT_TRUE(journal_.look_after_files([] { return false; }))
            << "it is tried again with the next pass";
        ASSERT_FALSE(journal_.faults().empty());
        EXPECT_NE(journal_.faults().back().message.find("nothing is changed"), std::string::npos);
        EXPECT_FALSE(journal_.remember(late_, online_, CpuSet{2}, "p"));
        EXPECT_FALSE(journal_.find(late_));
    }
    void expect_changes() {
        EXPECT_TRUE(journal_.look_after_files([] { return false; }));
        for (const auto& fault : journal_.faults())
            EXPECT_EQ(fault.message.find("nothing is changed"), std::string::npos) << fault.to_string();
        EXPECT_TRUE(journal_.remember(late_, online_, CpuSet{2}, "p"));
        const auto next = open_there();
        EXPECT_TRUE(next.find(one_.subject));
        EXPECT_TRUE(next.find(late_));
        EXPECT_TRUE(next.faults().empty());
    }
    const Case one_{TaskMask{{1, 1}, 1, "t"}, online_, CpuSet{1}, {}};
    const Subject late_ = TaskMask{{9, 9}, 9, "late"};
    Journal journal_ = [this] {
        tree_.folder("run");
        return open_there();
    }();
};

TEST_F(RemovedFolder, IsMadeAgainAndSaid) {
    expect_changes();
    ASSERT_EQ(journal_.faults().size(), 1U);
    EXPECT_NE(journal_.faults()[0].message.find("control socket"), std::string::npos);
}

TEST_F(RemovedFolder, ThatCannotBeMadeAgainMeansNoChangesUntilItCan) {
    tree_.file("run", "in its place");
    expect_no_change();
    std::filesystem::remove(folder());
    expect_changes();
}

TEST_F(RemovedFolder, ThatIsAnotherUsersNowIsNotUsed) {
    tree_.folder("run");
    std::filesystem::permissions(folder(), std::filesystem::perms::others_write,
                                 std::filesystem::perm_options::add);
    expect_no_change();
    EXPECT_TRUE(std::filesystem::is_empty(folder()));
    std::filesystem::permissions(folder(), std::filesystem::perms::others_write,
                                 std::filesystem::perm_options::remove);
    expect_changes();
}

TEST_F(Past, FilesAreWrittenAnewInSlices) {
    auto journal = open();
    for (int i = 1; i <= 100; ++i)
        change(journal, {TaskMask{{i, 1}, i, "t"}, online_, CpuSet{1}, {}});
    journal = open(); // written anew, with one line for each
    const auto written = std::filesystem::file_size(path());
    std::filesystem::remove(path());
    unsigned slices = 1;
    while (!journal.look_after_files([] { return true; }))
        ++slices;
    EXPECT_GT(slices, 2U);
    EXPECT_EQ(std::filesystem::file_size(path()), written);
}

TEST_F(Past, WhatWasKeptMayBeTakenUpAgain) {
    auto journal = open();
    const auto one = cases().front();
    change(journal, one);
    const auto record = journal.find(one.subject);
    ASSERT_TRUE(journal.settle(one.subject, Parting::kept));
    ASSERT_TRUE(journal.resume(one.subject));
    EXPECT_EQ(journal.find(one.subject), record);
    EXPECT_EQ(journal.contents().past().size(), 0U);
    ASSERT_TRUE(journal.settle(one.subject));
    ASSERT_TRUE(journal.resume(one.subject));
    EXPECT_FALSE(journal.find(one.subject)) << "it was put back";
}

TEST_F(Past, AMaskThatCannotBeNotedMustNotBeGranted) {
    auto journal = open();
    const auto one = cases().front();
    {
        const test::FullDisk full;
        EXPECT_FALSE(journal.remember(one.subject, one.original, one.granted, "p"));
    }
    EXPECT_FALSE(journal.contains(one.subject));
    ASSERT_TRUE(journal.remember(one.subject, one.original, one.granted, "p"));
}

TEST_F(Past, ChildrenOfAKeptTaskAreExplainedAndKeptThemselves) {
    {
        auto journal = open();
        change(journal, cases().front());
        ASSERT_TRUE(journal.settle(cases().front().subject, Parting::kept));
        EXPECT_TRUE(journal.find_mask_source(120, CpuSet{1}, online_)->is_kept);
    }
    auto journal = open();
    for (int pass = 0; pass < 4; ++pass)
        journal.mask_sources().age();
    const auto source = journal.find_mask_source(120, CpuSet{1}, online_);
    ASSERT_TRUE(source);
    EXPECT_EQ(source->original, online_);
    EXPECT_TRUE(source->is_kept);
    change(journal, cases().front());
    EXPECT_FALSE(journal.find_mask_source(120, CpuSet{1}, online_)->is_kept) << "a policy has it now";
    ASSERT_TRUE(journal.forget(cases().front().subject));
}

TEST_F(Past, TasksThatArePutBackTakeBoundedMemoryAndLeaveQueuesAlone) {
    auto journal = open();
    const Case queue = cases()[1];
    change(journal, queue);
    ASSERT_TRUE(journal.settle(queue.subject));
    constexpr auto surplus = 1000;
    constexpr auto tasks = static_cast<int>(PastRecords::most_put_back) + surplus;
    for (int i = 1; i <= tasks; ++i) {
        const TaskMask task{{i, 1}, i, "t"};
        ASSERT_TRUE(journal.remember(task, online_, CpuSet{1}, "p"));
        ASSERT_TRUE(journal.settle(task));
    }
    EXPECT_EQ(journal.contents().past().size(), PastRecords::most_put_back + 1);
    EXPECT_TRUE(journal.contents().past().contains(TaskMask{{tasks, 1}, 0, {}}));
    EXPECT_EQ(journal.recall(queue.subject, queue.granted, online_)->original, queue.original);
}

TEST(NumberSet, IsBoundedAndForgetsTheOldest) {
    NumberSet numbers(1000);
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        EXPECT_TRUE(numbers.add(i * 0x9e3779b97f4a7c15ULL >> 1U));
        ASSERT_LE(numbers.size(), 1000U);
        ASSERT_TRUE(numbers.contains(i * 0x9e3779b97f4a7c15ULL >> 1U));
    }
    EXPECT_TRUE(numbers.contains(9600 * 0x9e3779b97f4a7c15ULL >> 1U));
    EXPECT_FALSE(numbers.contains(8000 * 0x9e3779b97f4a7c15ULL >> 1U));
    EXPECT_FALSE(numbers.add(9999 * 0x9e3779b97f4a7c15ULL >> 1U));
    numbers.erase(9999 * 0x9e3779b97f4a7c15ULL >> 1U);
    EXPECT_FALSE(numbers.contains(9999 * 0x9e3779b97f4a7c15ULL >> 1U));
}

} // namespace
} // namespace affinityd::state
