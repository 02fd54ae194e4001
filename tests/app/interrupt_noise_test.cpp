// SPDX-License-Identifier: Apache-2.0
// What interrupts take varies from minute to minute: a re-deal does not run after that.
#include "../planner/lives.hpp"
#include "app/world.hpp"
#include "planner/redeal.hpp"

#include <functional>
#include <map>

namespace affinityd::app {
namespace {

using planner::one_cpu;
using planner::Weight;
using planner::test::Dice;

/// What the interrupts of a CPU take in a minute.
using Use = std::function<Weight(unsigned minute)>;

/// The interrupts of eight queues are on eight of 32 cores. 128 threads on all of them use the same each
/// minute.
class InterruptNoise : public testing::Test {
  protected:
    InterruptNoise() {
        Dice dice(3);
        for (int i = 0; i < threads; ++i) {
            (void)assignments_.assign(
                {.distribution = everywhere_, .slots = slots(), .task = task(i), .present = {}});
            means_.push_back(dice.upto(300) * (one_cpu / 1000));
        }
        for (const auto& target : world_.placements().queues)
            if (std::holds_alternative<planner::IrqMask>(target.subject))
                cpus_.insert(target.wanted.cpus().first());
    }
    /// How many threads change places.
    std::size_t live(unsigned from, unsigned to, const Use& use) {
        std::size_t moves = 0;
        for (unsigned minute = from; minute < to; ++minute) {
            for (int i = 0; i < threads; ++i)
                assignments_.weigh(everywhere_, task(i), means_[static_cast<std::size_t>(i)]);
            std::map<unsigned, Weight> weights;
            for (const unsigned cpu : cpus_)
                weights[cpu] = use(minute);
            world_.weigh_interrupts(weights);
            assignments_.use(world_.placements().load);
            planner::Redeal redeal(world_.placements(), assignments_);
            redeal.step([] { return false; });
            moves += redeal.moves().size();
            for (const auto& move : redeal.moves())
                assignments_.move(move.task, move.table, move.from, move.to);
        }
        return moves;
    }
    /// After a quarter of an hour for all to find its place.
    std::size_t moves_in_half_an_hour(const Use& use) {
        live(0, 15, use);
        const auto moves = live(15, 45, use);
        std::printf("measured: %zu moves in half an hour\n", moves);
        return moves;
    }
    static machine::Machine machine() {
        auto machine = planner::test::without_smt(32);
        planner::test::add_nic(machine, "eth0", 0, 8, 40);
        machine.nics.back().node.reset();
        machine.nics.back().local_cpus = machine.topology.online;
        return machine;
    }
    [[nodiscard]] const std::vector<planner::Slot>& slots() const {
        return world_.placements().find("p0")->distributions[0];
    }
    static TaskId task(int i) { return {i + 1, 7}; }

    static constexpr int threads = 128;
    World world_{planner::test::policies({"match: {comm: app}\nspread: cpu\nbind: cpu\n",
                                          "match: {comm: none}\naffinity: irq\nnics: [eth0]\n"}),
                 machine()};
    planner::Assignments assignments_;
    const planner::DistributionId everywhere_{"p0", 0, ""};
    std::vector<Weight> means_; ///< what each thread uses
    std::set<unsigned> cpus_;   ///< that have interrupts
};

TEST_F(InterruptNoise, InterruptsThatTakeTheSameEachMinuteMoveNobody) {
    ASSERT_EQ(cpus_.size(), 8U);
    EXPECT_EQ(moves_in_half_an_hour([](unsigned) { return one_cpu / 5; }), 0U);
}

TEST_F(InterruptNoise, InterruptsThatVaryByChanceHardlyMoveAnybody) {
    Dice dice(5);
    EXPECT_LE(moves_in_half_an_hour([&](unsigned) { return dice.within(50, 350) * (one_cpu / 1000); }), 40U);
}

TEST_F(InterruptNoise, InterruptsThatComeInBurstsMoveFew) {
    Dice dice(5);
    EXPECT_LE(moves_in_half_an_hour([&](unsigned) {
                  return (dice.once_in(5) ? dice.within(500, 900) : 20) * (one_cpu / 1000);
              }),
              100U);
}

TEST_F(InterruptNoise, InterruptsThatTakeMuchFromNowOnMoveThreadsWithinTwoMinutes) {
    const auto little = [](unsigned) { return one_cpu / 50; };
    const auto much = [](unsigned) { return one_cpu * 8 / 10; };
    live(0, 12, little);
    EXPECT_EQ(live(12, 20, little), 0U);
    EXPECT_GE(live(20, 22, much), 8U);
    EXPECT_LE(live(22, 32, much), 8U) << "and that was it";
}

} // namespace
} // namespace affinityd::app
