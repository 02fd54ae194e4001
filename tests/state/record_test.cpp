// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"
#include "state/place.hpp"
#include "state/record.hpp"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace affinityd::state {
namespace {

using machine::FlowCount;
using machine::FlowTable;
using machine::IrqMask;
using machine::SteeringMask;
using machine::Subject;
using machine::TaskMask;
using machine::UnitCpuset;
using planner::UndoRecord;

using test::device;

std::string only_line(const Record& record) {
    auto line = to_line(record.subject, record.undo ? &*record.undo : nullptr);
    EXPECT_EQ(line.back(), '\n');
    line.pop_back();
    EXPECT_EQ(line.find('\n'), std::string::npos) << "hostile names must not make lines";
    return line;
}

// Twenty thousand lines with CPU 1048575 would take gigabytes.
TEST(Record, CpusThatNoKernelHasAreDamage) {
    const TaskMask task{{123, 456}, 120, "a"};
    const auto with = [&](unsigned cpu) {
        return parse_line(only_line({task, UndoRecord{CpuSet{0}, CpuSet{cpu}, CpuSet{0}, "p"}}));
    };
    EXPECT_TRUE(with(8191));
    EXPECT_FALSE(with(8192));
    EXPECT_FALSE(with(CpuSet::max_cpu));
}

TEST(Record, EveryKindOfSubjectSurvivesTheWayThroughText) {
    const UndoRecord of_cpus{CpuSet::range(0, 7), CpuSet{1}, CpuSet{}, "policy\twith tab"};
    const UndoRecord of_count{FlowCount{0}, FlowCount{40000}, FlowCount{65536}, "p"};
    const std::vector<std::pair<Subject, UndoRecord>> all{
        {TaskMask{{123, 456}, 120, "a\tname\nwith %41 bytes"}, of_cpus},
        {IrqMask{device, "eth0-TxRx-0", 0, 40}, of_cpus},
        {IrqMask{"", "eth0", 3, 4294967295U}, of_cpus},
        {IrqMask{device, "eth0", 0, 20, true}, of_cpus},
        {SteeringMask{device, machine::Direction::tx, 12, "eth0"}, of_cpus},
        {SteeringMask{"veth0", machine::Direction::rx, 0, "veth0"}, of_cpus},
        {SteeringMask{"veth0", machine::Direction::rx, 0, "veth0", 7}, of_cpus},
        {FlowTable{"veth0", 0, "veth0", 7}, of_count},
        {SteeringMask{device, machine::Direction::rx, 0, "p1", 7, true}, of_cpus},
        {FlowTable{device, 0, "p1", 7, true}, of_count},
        {FlowTable{device, 7, "eth0"}, of_count},
        {FlowTable{"", 0, "machine"}, of_count},
        {UnitCpuset{"a\\x2db.service"}, of_cpus}};
    for (const auto& [subject, undo] : all) {
        const auto back = parse_line(only_line({subject, undo}));
        ASSERT_TRUE(back) << to_string(subject);
        EXPECT_EQ(back->subject, subject);
        EXPECT_EQ(to_string(back->subject), to_string(subject)) << "what is not part of the identity, too";
        EXPECT_EQ(place_of(back->subject), place_of(subject));
        ASSERT_TRUE(back->undo);
        EXPECT_EQ(*back->undo, undo);
        const auto gone = parse_line(only_line({subject, std::nullopt}));
        ASSERT_TRUE(gone);
        EXPECT_EQ(gone->subject, subject);
        EXPECT_FALSE(gone->undo);
        EXPECT_FALSE(gone->past);
        for (const auto parting : {Parting::kept, Parting::put_back}) {
            auto line = to_line(subject, &undo, parting);
            line.pop_back();
            const auto past = parse_line(line);
            ASSERT_TRUE(past && past->past);
            EXPECT_EQ(past->subject, subject);
            EXPECT_FALSE(past->undo) << "it is in force no more";
            EXPECT_EQ(past->past->record, undo);
            EXPECT_EQ(past->past->parting, parting);
        }
    }
}

TEST(Record, TheTimeOfATasksMaskSurvivesTheWayThroughText) {
    const Subject task = TaskMask{{123, 456}, 120, "worker"};
    const UndoRecord undo{CpuSet::range(0, 7), CpuSet{1}, CpuSet{1}, "p"};
    const auto read = [](std::string line) {
        line.pop_back();
        return parse_line(line);
    };
    EXPECT_EQ(read(to_line(task, &undo, 4711))->since_or_until, 4711U);
    EXPECT_EQ(read(to_line(task, &undo, 4711))->undo, undo);
    EXPECT_EQ(read(to_line(task, &undo, Parting::put_back, 4712))->since_or_until, 4712U);
    EXPECT_EQ(read(to_line(task, &undo, Parting::put_back, 4712))->past->record, undo);
    EXPECT_EQ(read(to_line(task, &undo))->since_or_until, 0U) << "it is not known";
}

TEST(Record, AnIdentityIsTheSameTextWhateverNumberAndNameAre) {
    const auto same = [](const Subject& a, const Subject& b) { return identity_of(a) == identity_of(b); };
    EXPECT_TRUE(same(TaskMask{{1, 2}, 3, "a"}, TaskMask{{1, 2}, 4, "b"}));
    EXPECT_FALSE(same(TaskMask{{1, 2}, 3, "a"}, TaskMask{{1, 3}, 3, "a"}));
    EXPECT_TRUE(same(IrqMask{device, "eth0", 0, 40}, IrqMask{device, "eth0", 0, 41}));
    EXPECT_FALSE(same(IrqMask{device, "eth0", 0, 40}, IrqMask{device, "eth0", 1, 40}));
    EXPECT_TRUE(same(IrqMask{"a", "eth0", 0, 20, true}, IrqMask{"b", "eth1", 0, 20, true}));
    EXPECT_FALSE(same(IrqMask{"a", "eth0", 0, 20, true}, IrqMask{"a", "eth0", 0, 21, true}));
    EXPECT_FALSE(same(SteeringMask{device, machine::Direction::rx, 1, "a"},
                      SteeringMask{device, machine::Direction::tx, 1, "a"}));
    EXPECT_TRUE(same(FlowTable{device, 1, "a"}, FlowTable{device, 1, "b"}));
    EXPECT_TRUE(same(FlowTable{device, 1, "a", 7}, FlowTable{device, 1, "a", 8}));
    EXPECT_FALSE(same(FlowTable{device, 1, "a", 7, true}, FlowTable{device, 1, "b", 8, true}));
    EXPECT_FALSE(same(SteeringMask{device, machine::Direction::rx, 1, "a", 7, true},
                      SteeringMask{device, machine::Direction::rx, 1, "b", 8, true}));
}

TEST(Record, ALineCutOrChangedAnywhereIsNoRecord) {
    const auto line =
        only_line({IrqMask{device, "eth0-TxRx-0", 0, 40}, UndoRecord{CpuSet{0}, CpuSet{1}, CpuSet{1}, "p"}});
    ASSERT_TRUE(parse_line(line));
    for (std::size_t length = 0; length < line.size(); ++length)
        EXPECT_FALSE(parse_line(line.substr(0, length))) << length;
    for (std::size_t at = 0; at < line.size(); ++at) {
        auto damaged = line;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        EXPECT_FALSE(parse_line(damaged)) << at;
    }
}

TEST(Record, ForeignTextWithAGoodChecksumIsNoRecord) {
    const auto checked = [](const std::string& text) {
        std::uint32_t sum = 2166136261U;
        for (const char c : text)
            sum = (sum ^ static_cast<unsigned char>(c)) * 16777619U;
        char hex[9];
        std::snprintf(hex, sizeof hex, "%08x", sum);
        return text + "\t" + hex;
    };
    ASSERT_TRUE(parse_line(checked("unit\ta\t\t\t\theld\t\t1\t1\tp")));
    for (const char* text : {"",
                             "unit",
                             "unit\ta\t\t\t\theld\t\t1\t1",
                             "moon\ta\t\t\t\theld\t\t1\t1\tp",
                             "unit\ta\t\t\t\tlost\t\t1\t1\tp",
                             "task\t0\t5\t1\ta\theld\t\t1\t1\tp",
                             "task\t5\t5\t0\ta\theld\t\t1\t1\tp",
                             "task\t-5\t5\t1\ta\theld\t\t1\t1\tp",
                             "task\t5\t-5\t1\ta\theld\t\t1\t1\tp",
                             "irq\td\tl\tx\t\theld\t\t1\t1\tp",
                             "irq\td\tl\t1\tx\theld\t\t1\t1\tp",
                             "steering\td\teth0\tzx-0\t\theld\t\t1\t1\tp",
                             "steering\td\teth0\trx-\t\theld\t\t1\t1\tp",
                             "steering\td\teth0\trx\t\theld\t\t1\t1\tp",
                             "steering\td\teth0\t\t\theld\t\t1\t1\tp",
                             "steering\td\teth0\trx--flows\t\theld\t\t1\t1\tp",
                             "steering\td\teth0\trx-flows\t\theld\t\t1\t1\tp",
                             "steering\td\teth0\trx-x-flows\t\theld\t\t1\t1\tp",
                             "steering\td\teth0\trx-0-flows\t\theld\t\t32\t1\tp",
                             "steering\td\teth0\trx-0-flows\t\theld\t\tmany\t1\tp",
                             "steering\td\teth0\tflow-entries\t\theld\t\t1\t1\tp",
                             "flows\td\teth0\t0\t\theld\t-1\t1\t1\tp",
                             "flows\td\teth0\t0\t\theld\t4294967296\t1\t1\tp",
                             "flows\td\teth0\t0\t\theld\t\t1\t1\tp",
                             "unit\ta\t\t\t\theld\tx\t1\t1\tp"})
        EXPECT_FALSE(parse_line(checked(text))) << text;
}

} // namespace
} // namespace affinityd::state
