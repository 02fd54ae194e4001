// SPDX-License-Identifier: Apache-2.0
#include "planner/assignments.hpp"

#include <gtest/gtest.h>

namespace affinityd::planner {
namespace {

const DealId deal{"p", 0, ""};

std::vector<Slot> slots_at(std::initializer_list<unsigned> cpus) {
    std::vector<Slot> slots;
    for (const unsigned cpu : cpus)
        slots.push_back({CpuSet{cpu}, CpuSet{cpu}});
    return slots;
}

TaskId unit(int tid) { return {tid, 1}; }

TEST(Assignments, DealInOrderAndBalance) {
    Assignments seats;
    const auto slots = slots_at({0, 1, 2});
    std::vector<std::size_t> got;
    for (int i = 0; i < 7; ++i)
        got.push_back(seats.seat(deal, slots, unit(i), {}));
    EXPECT_EQ(got, (std::vector<std::size_t>{0, 1, 2, 0, 1, 2, 0}));
}

TEST(Assignments, WhoStaysKeepsTheSeatWhenOthersComeAndGo) {
    Assignments seats;
    const auto slots = slots_at({0, 1});
    for (int i = 0; i < 4; ++i)
        seats.seat(deal, slots, unit(i), {});
    seats.leave(unit(0));
    EXPECT_EQ(seats.seat(deal, slots, unit(1), {}), 1U);
    EXPECT_EQ(seats.seat(deal, slots, unit(2), {}), 0U);
    EXPECT_EQ(seats.seat(deal, slots, unit(9), {}), 0U) << "the seat that was left is the emptiest";
    EXPECT_EQ(seats.units(), 4U);
}

TEST(Assignments, ASeatThatGoesIsDealtAnewAndTheOthersStay) {
    Assignments seats;
    for (int i = 0; i < 3; ++i)
        seats.seat(deal, slots_at({0, 1, 2}), unit(i), {});
    const auto fewer = slots_at({0, 2});
    EXPECT_EQ(seats.seat(deal, fewer, unit(0), {}), 0U);
    EXPECT_EQ(seats.seat(deal, fewer, unit(2), {}), 1U);
    EXPECT_EQ(seats.seat(deal, fewer, unit(1), {}), 0U);
}

TEST(Assignments, ASeatThatComesBackIsTakenAgainByWhoHadIt) {
    Assignments seats;
    const auto all = slots_at({0, 1});
    for (int i = 0; i < 4; ++i)
        seats.seat(deal, all, unit(i), {});
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(seats.seat(deal, slots_at({0}), unit(i), {}), 0U);
    EXPECT_EQ(seats.seat(deal, all, unit(3), {}), 1U);
    EXPECT_EQ(seats.seat(deal, all, unit(0), {}), 0U);
    EXPECT_EQ(seats.seat(deal, all, unit(1), {}), 1U);
    EXPECT_EQ(seats.seat(deal, all, unit(2), {}), 0U);
    EXPECT_EQ(seats.units(), 4U);
    seats.leave(unit(1));
    EXPECT_EQ(seats.seat(deal, all, unit(9), {}), 1U) << "the loads were counted along";
}

TEST(Assignments, WhoMovedBecauseASeatWentStaysUntilItComesBack) {
    Assignments seats;
    for (int i = 0; i < 3; ++i)
        seats.seat(deal, slots_at({0, 1, 2}), unit(i), {});
    const auto moved = seats.seat(deal, slots_at({0, 1}), unit(2), {});
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(seats.seat(deal, slots_at({0, 1}), unit(2), {}), moved);
    EXPECT_EQ(seats.seat(deal, slots_at({0, 1, 3}), unit(2), {}), moved)
        << "another seat is no reason to move";
    EXPECT_EQ(seats.seat(deal, slots_at({0, 1, 2}), unit(2), {}), 2U);
}

TEST(Assignments, AmongEqualSeatsTheOneTheUnitIsOnAlready) {
    Assignments seats;
    const auto slots = slots_at({0, 1, 2});
    EXPECT_EQ(seats.seat(deal, slots, unit(1), CpuSet{2}), 2U);
    EXPECT_EQ(seats.seat(deal, slots, unit(2), CpuSet{2}), 0U) << "not if it is fuller";
}

TEST(Assignments, DealsAreApartAndPoliciesAreForgotten) {
    Assignments seats;
    const auto slots = slots_at({0, 1});
    seats.seat(deal, slots, unit(1), {});
    EXPECT_EQ(seats.seat({"p", 1, ""}, slots, unit(1), {}), 0U);
    EXPECT_EQ(seats.seat({"q", 0, ""}, slots, unit(2), {}), 0U);
    seats.forget_policy("p");
    EXPECT_EQ(seats.units(), 1U);
    seats.retain([](const TaskId&) { return false; });
    EXPECT_EQ(seats.units(), 0U);
}

} // namespace
} // namespace affinityd::planner
