// SPDX-License-Identifier: Apache-2.0
#include "state/granted_masks.hpp"
#include "support/tree.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace affinityd::state {
namespace {

using machine::IrqMask;
using machine::SteeringMask;
using machine::Subject;

const machine::Setting mask = CpuSet{1};

/// One number each: they have no place of their own.
Subject queue(unsigned number) { return SteeringMask{"devices/a", machine::Direction::tx, number, "eth0"}; }

class Granted : public testing::Test {
  protected:
    [[nodiscard]] GrantedMasks open() const {
        std::optional<Error> fault;
        auto masks = GrantedMasks::open(tree_.path("granted"), fault);
        EXPECT_FALSE(fault);
        if (!masks) throw std::runtime_error(masks.error().to_string());
        return std::move(*masks);
    }
    static void note(GrantedMasks& masks, unsigned from, unsigned to) {
        for (unsigned i = from; i < to; ++i)
            ASSERT_TRUE(masks.note(queue(i), mask));
    }
    static unsigned known(const GrantedMasks& masks, unsigned from, unsigned to) {
        unsigned count = 0;
        for (unsigned i = from; i < to; ++i)
            count += masks.contains(queue(i), mask) ? 1 : 0;
        return count;
    }
    test::Tree tree_;
};

TEST_F(Granted, ThoseThatWereAddedFirstAreForgottenFirstAfterARewriteAndARestartToo) {
    constexpr unsigned half = GrantedMasks::most_of_queues / 2;
    constexpr unsigned before = half + half / 4;
    for (const bool is_rewritten : {false, true}) {
        std::filesystem::remove(tree_.path("granted"));
        {
            auto masks = open();
            note(masks, 0, before);
            if (is_rewritten) {
                masks.begin_rewrite();
                while (!masks.rewrite_some()) {
                }
                masks.finish_rewrite();
            }
        }
        EXPECT_EQ(open().size(), before); // and the file is written anew
        auto masks = open();
        note(masks, before, before + half); // more than there is room for
        EXPECT_EQ(known(masks, half, before + half), half + half / 4) << is_rewritten;
        EXPECT_LT(known(masks, 0, half), half / 4) << is_rewritten;
    }
}

TEST_F(Granted, AMaskIsKnownUnderAnotherNameOfWhatHasIt) {
    {
        auto masks = open();
        ASSERT_TRUE(masks.note(IrqMask{"devices/a", "eth0-TxRx-0", 0, 40}, mask));
        ASSERT_TRUE(masks.note(SteeringMask{"va", machine::Direction::tx, 0, "va", 7, false, 4711}, mask));
        ASSERT_TRUE(masks.note(machine::FlowTable{"va", 0, "va", 7, false, 4711}, mask));
        ASSERT_TRUE(masks.note(SteeringMask{"devices/a", machine::Direction::tx, 0, "p0", 8, true}, mask));
    }
    auto masks = open();
    EXPECT_TRUE(masks.contains(IrqMask{"devices/a", "eth0-TxRx-0", 0, 41}, mask)) << "another number";
    EXPECT_TRUE(masks.contains(IrqMask{"devices/a", "lan0-TxRx-0", 0, 40}, mask)) << "another label";
    EXPECT_FALSE(masks.contains(IrqMask{"devices/a", "lan0-TxRx-0", 0, 41}, mask));
    EXPECT_FALSE(masks.contains(IrqMask{"devices/b", "lan0-TxRx-0", 0, 40}, mask));
    EXPECT_TRUE(masks.contains(SteeringMask{"va", machine::Direction::tx, 0, "va", 8, false, 4711}, mask))
        << "it was elsewhere, and has another index";
    EXPECT_TRUE(masks.contains(machine::FlowTable{"va", 0, "va", 8, false, 4711}, mask));
    EXPECT_FALSE(masks.contains(SteeringMask{"va", machine::Direction::tx, 0, "va", 8, false, 4712}, mask))
        << "it was made anew";
    EXPECT_FALSE(masks.contains(SteeringMask{"va", machine::Direction::tx, 0, "va", 8}, mask));
    EXPECT_TRUE(masks.contains(SteeringMask{"devices/a", machine::Direction::tx, 0, "p0", 8}, mask))
        << "the other port is elsewhere";
    EXPECT_FALSE(masks.contains(SteeringMask{"devices/a", machine::Direction::tx, 0, "p1", 9, true}, mask));
    EXPECT_TRUE(masks.contains(SteeringMask{"vx", machine::Direction::tx, 0, "vx", 7}, mask));
    EXPECT_FALSE(masks.contains(SteeringMask{"vx", machine::Direction::rx, 0, "vx", 7}, mask));
    EXPECT_FALSE(masks.contains(SteeringMask{"vx", machine::Direction::tx, 0, "vx", 0}, mask));
    masks.forget(IrqMask{"devices/a", "eth0-TxRx-0", 0, 40}, mask);
    EXPECT_FALSE(masks.contains(IrqMask{"devices/a", "lan0-TxRx-0", 0, 40}, mask));
}

// Their places in the table must not be anybody's to choose: each search would walk over all of them.
TEST_F(Granted, NumbersOfAFileThatAreAlikeInTheirLowHalvesAreReadInNoTime) {
    constexpr unsigned count = 60000;
    { // the file's first line says of which boot it is
        auto masks = open();
        note(masks, 0, 1);
    }
    std::ifstream file(tree_.path("granted"));
    std::string text(std::istreambuf_iterator<char>(file), {});
    for (unsigned i = 0; i < count; ++i)
        text += fmt::format("t{:08x}00000001\n", i);
    std::ofstream(tree_.path("granted")) << text;
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(open().size(), count + 1);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    EXPECT_LT(took.count(), 4.0);
    EXPECT_EQ(open().size(), count + 1) << "the file is written anew with the same numbers";
    EXPECT_EQ(known(open(), 0, 1), 1U);
    std::printf("measured: %u numbers alike read in %.0f ms\n", count, took.count() * 1000);
}

} // namespace
} // namespace affinityd::state
