// SPDX-License-Identifier: Apache-2.0
#include "machines.hpp"
#include "planner/assignments.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace affinityd::planner {
namespace {

const DistributionId distribution{"p", 0, ""};

std::vector<Slot> slots_at(std::initializer_list<unsigned> cpus) {
    std::vector<Slot> slots;
    for (const unsigned cpu : cpus)
        slots.push_back({CpuSet{cpu}, CpuSet{cpu}});
    return slots;
}

TaskId task(int tid) { return {tid, 1}; }

std::size_t assign(Assignments& assignments, const DistributionId& id, const std::vector<Slot>& slots,
                   const TaskId& task, const CpuSet& present) {
    return assignments.assign({.distribution = id, .slots = slots, .task = task, .present = present});
}

TEST(Assignments, NewTasksTakeTheSlotsInOrderAndEvenly) {
    Assignments assignments;
    const auto slots = slots_at({0, 1, 2});
    std::vector<std::size_t> got;
    for (int i = 0; i < 7; ++i)
        got.push_back(assign(assignments, distribution, slots, task(i), {}));
    EXPECT_EQ(got, (std::vector<std::size_t>{0, 1, 2, 0, 1, 2, 0}));
}

/// Three idle tasks of another policy are on CPU 0.
TEST(Assignments, TasksAreSpreadOverTheSlotsFirstWhateverOthersDo) {
    Assignments assignments;
    const DistributionId other{"other", 0, ""};
    for (int i = 0; i < 3; ++i)
        assign(assignments, other, slots_at({0}), task(100 + i), {});
    const auto slots = slots_at({0, 1});
    EXPECT_EQ(assign(assignments, distribution, slots, task(1), {}), 1U);
    EXPECT_EQ(assign(assignments, distribution, slots, task(2), {}), 0U);
}

TEST(Assignments, AMasterTakesNoSlotFromItsWorkers) {
    Assignments assignments;
    const auto slots = slots_at({0, 1});
    const auto worker = [&](int tid) {
        return assignments.assign({.distribution = distribution,
                                   .slots = slots,
                                   .task = task(tid),
                                   .present = {},
                                   .process = task(tid),
                                   .parent = task(1)});
    };
    for (int i = 0; i < 2; ++i)
        assign(assignments, {"other", 0, ""}, slots_at({1}), task(100 + i), {});
    EXPECT_EQ(assign(assignments, distribution, slots, task(1), {}), 0U);
    EXPECT_EQ(worker(2), 0U);
    EXPECT_EQ(worker(3), 1U);
}

TEST(Assignments, TasksThatAreKnownToBeIdleTakeNoSlotFromBusyOnes) {
    Assignments assignments;
    const auto slots = slots_at({0, 1});
    EXPECT_EQ(assign(assignments, distribution, slots, task(1), {}), 0U);
    EXPECT_EQ(assign(assignments, distribution, slots, task(2), {}), 1U);
    EXPECT_EQ(assign(assignments, distribution, slots, task(3), {}), 0U);
    assignments.weigh(*assignments.number(distribution), task(1), 0);
    assignments.weigh(*assignments.number(distribution), task(3), 0);
    EXPECT_EQ(assign(assignments, distribution, slots, task(4), {}), 0U);
    EXPECT_EQ(assign(assignments, distribution, slots, task(5), {}), 0U) << "the first: one each";
}

/// `bind: llc` becomes `bind: core`.
TEST(Assignments, TasksOfASlotThatIsDividedAreSpreadOverItsParts) {
    Assignments assignments;
    const std::vector<Slot> wide{{CpuSet::range(0, 3), CpuSet::range(0, 3)},
                                 {CpuSet::range(4, 7), CpuSet::range(4, 7)}};
    const auto narrow = slots_at({0, 1, 2, 3, 4, 5, 6, 7});
    const auto id = [](int i) { return DistributionId{"p" + std::to_string(i), 0, ""}; };
    for (int i = 0; i < 4; ++i) {
        assign(assignments, id(i), wide, task(i), {});
        assignments.weigh(*assignments.number(id(i)), task(i), one_cpu);
    }
    std::set<std::size_t> got;
    for (int i = 0; i < 4; ++i)
        got.insert(assign(assignments, id(i), narrow, task(i), {}));
    EXPECT_EQ(got.size(), 4U);
    for (int i = 0; i < 4; ++i)
        EXPECT_TRUE(got.contains(assign(assignments, id(i), narrow, task(i), {}))) << "and stay there";
}

TEST(Assignments, TasksKeepTheirSlotsWhenOthersComeAndGo) {
    Assignments assignments;
    const auto slots = slots_at({0, 1});
    for (int i = 0; i < 4; ++i)
        assign(assignments, distribution, slots, task(i), {});
    assignments.drop(task(0));
    EXPECT_EQ(assign(assignments, distribution, slots, task(1), {}), 1U);
    EXPECT_EQ(assign(assignments, distribution, slots, task(2), {}), 0U);
    EXPECT_EQ(assign(assignments, distribution, slots, task(9), {}), 0U)
        << "the slot that was left is the emptiest";
    EXPECT_EQ(assign(assignments, distribution, slots, task(10), {}), 0U) << "two tasks are on each again";
    EXPECT_EQ(assign(assignments, distribution, slots, task(11), {}), 1U);
}

TEST(Assignments, TasksOfASlotThatGoesMoveAndTheOthersStay) {
    Assignments assignments;
    for (int i = 0; i < 3; ++i)
        assign(assignments, distribution, slots_at({0, 1, 2}), task(i), {});
    const auto fewer = slots_at({0, 2});
    EXPECT_EQ(assign(assignments, distribution, fewer, task(0), {}), 0U);
    EXPECT_EQ(assign(assignments, distribution, fewer, task(2), {}), 1U);
    EXPECT_EQ(assign(assignments, distribution, fewer, task(1), {}), 0U);
}

TEST(Assignments, ASlotThatComesBackIsTakenAgainByTheTasksThatHadIt) {
    Assignments assignments;
    const auto all = slots_at({0, 1});
    for (int i = 0; i < 4; ++i)
        assign(assignments, distribution, all, task(i), {});
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(assign(assignments, distribution, slots_at({0}), task(i), {}), 0U);
    EXPECT_EQ(assign(assignments, distribution, all, task(3), {}), 1U);
    EXPECT_EQ(assign(assignments, distribution, all, task(0), {}), 0U);
    EXPECT_EQ(assign(assignments, distribution, all, task(1), {}), 1U);
    EXPECT_EQ(assign(assignments, distribution, all, task(2), {}), 0U);
    assignments.drop(task(1));
    EXPECT_EQ(assign(assignments, distribution, all, task(9), {}), 1U)
        << "the tasks on each were counted along";
}

TEST(Assignments, ReadersWhoseSeatsComeBackShareThemEvenly) {
    for (const unsigned kept : {0U, 1U}) {
        Assignments assignments;
        unsigned world = 0;
        const auto deal = [&](const std::vector<Slot>& slots) {
            std::vector<int> readers(2);
            assignments.use(nullptr, ++world);
            for (int look = 0; look < 2; ++look) {
                readers.assign(2, 0);
                for (int i = 0; i < 8; ++i) {
                    const auto at = assignments.assign({.distribution = distribution,
                                                        .slots = slots,
                                                        .task = task(i),
                                                        .present = {},
                                                        .unit = SlotRequest::Unit::lane});
                    ++readers[slots[at].cpus.first()];
                }
            }
            return readers;
        };
        deal(slots_at({0, 1}));
        deal(slots_at({kept}));
        EXPECT_EQ(deal(slots_at({0, 1})), (std::vector<int>{4, 4})) << kept;
    }
}

TEST(Assignments, ATaskThatMovedBecauseItsSlotWentStaysUntilThatComesBack) {
    Assignments assignments;
    for (int i = 0; i < 3; ++i)
        assign(assignments, distribution, slots_at({0, 1, 2}), task(i), {});
    const auto moved = assign(assignments, distribution, slots_at({0, 1}), task(2), {});
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(assign(assignments, distribution, slots_at({0, 1}), task(2), {}), moved);
    EXPECT_EQ(assign(assignments, distribution, slots_at({0, 1, 3}), task(2), {}), moved)
        << "another slot is no reason to move";
    EXPECT_EQ(assign(assignments, distribution, slots_at({0, 1, 2}), task(2), {}), 2U);
}

TEST(Assignments, AmongEquallyFullSlotsATaskGetsTheOneWhoseMaskItHas) {
    Assignments assignments;
    const auto slots = slots_at({0, 1, 2});
    EXPECT_EQ(assign(assignments, distribution, slots, task(1), CpuSet{2}), 2U);
    EXPECT_EQ(assign(assignments, distribution, slots, task(2), CpuSet{2}), 0U) << "not if it is fuller";
}

TEST(Assignments, AllDistributionsAreCountedTogether) {
    Assignments assignments;
    const auto slots = slots_at({0, 1});
    EXPECT_EQ(assign(assignments, distribution, slots, task(1), {}), 0U);
    EXPECT_EQ(assign(assignments, {"p", 1, ""}, slots, task(2), {}), 1U) << "another thread rule";
    EXPECT_EQ(assign(assignments, {"p", 0, "eth0", DistributionId::Kind::lanes}, slots, task(3), {}), 0U)
        << "the lanes of an interface";
    EXPECT_EQ(assign(assignments, {"q", 0, ""}, slots, task(4), {}), 1U) << "another policy";
    EXPECT_EQ(assign(assignments, distribution, slots, task(5), {}), 1U) << "its own are spread first";
}

TEST(Assignments, AForgottenPolicyStartsAnewAndOthersGoOn) {
    Assignments assignments;
    const auto slots = slots_at({0, 1, 2});
    assign(assignments, distribution, slots, task(1), {});
    assign(assignments, {"p", 1, ""}, slots, task(1), {});
    assign(assignments, {"q", 0, ""}, slots, task(1), {});
    assignments.drop_policy("p");
    EXPECT_EQ(assign(assignments, distribution, slots, task(2), {}), 0U);
    EXPECT_EQ(assign(assignments, {"p", 1, ""}, slots, task(2), {}), 1U);
    EXPECT_EQ(assign(assignments, {"q", 0, ""}, slots, task(1), {}), 2U) << "it keeps what it has";
}

TEST(Assignments, ATaskThatLeftIsForgottenInEachDistribution) {
    Assignments assignments;
    const auto slots = slots_at({0, 1});
    for (const unsigned rule : {0U, 1U})
        assign(assignments, {"p", rule, ""}, slots, task(1), {});
    assignments.drop(task(1));
    assignments.drop(task(7)); // was never there
    for (const unsigned rule : {0U, 1U})
        EXPECT_EQ(assign(assignments, {"p", rule, ""}, slots, task(2), {}), rule) << "all is free again";
}

TEST(Assignments, ATaskThatMayRunEverywhereWeighsOnAllCpusAlikeAndHasItsSlotAgainLater) {
    Assignments assignments;
    const auto topology = test::plain().topology;
    assignments.use(std::make_shared<const CpuLoad>(CpuLoad(topology)));
    const auto slots = slots_at({0, 1});
    for (int i = 0; i < 2; ++i)
        assign(assignments, distribution, slots, task(i), {});
    EXPECT_EQ(assignments.load().on_cpu(0), one_cpu);
    const std::vector<Slot> everywhere{{topology.online, topology.online}};
    for (int i = 0; i < 2; ++i)
        assign(assignments, distribution, everywhere, task(i), {});
    const auto share = 2 * one_cpu / static_cast<Weight>(topology.online.count());
    for (const unsigned cpu : topology.online)
        EXPECT_EQ(assignments.load().on_cpu(cpu), share) << cpu;
    EXPECT_EQ(assign(assignments, distribution, slots, task(1), {}), 1U);
    EXPECT_EQ(assign(assignments, distribution, slots, task(0), {}), 0U);
}

TEST(Assignments, ATaskKeepsSlotAndWeightWhenItsInterfaceHasAnotherName) {
    using Kind = DistributionId::Kind;
    Assignments assignments;
    const auto lanes = slots_at({0, 1, 2});
    const DistributionId before{"p", 0, "eth0", Kind::lanes};
    for (int i = 0; i < 3; ++i)
        assign(assignments, before, lanes, task(i), {});
    assignments.drop(task(0));
    assignments.weigh(*assignments.number(before), task(2), 3 * one_cpu);
    for (const auto& now :
         {DistributionId{"p", 0, "lan0", Kind::lanes}, DistributionId{"p", 0, "", Kind::all_lanes}})
        for (const int one : {2, 1}) {
            EXPECT_EQ(assign(assignments, now, lanes, task(one), {}), static_cast<std::size_t>(one));
            assignments.drop_others(task(one), std::vector{*assignments.number(now)});
        }
    EXPECT_EQ(assignments.load().on_cpu(2), 3 * one_cpu);
    EXPECT_EQ(assignments.load().on_cpu(1), one_cpu);
    EXPECT_EQ(assign(assignments, {"other", 0, "lan0", Kind::lanes}, lanes, task(1), {}), 0U)
        << "another policy";
}

} // namespace
} // namespace affinityd::planner
