// SPDX-License-Identifier: Apache-2.0
// `isolate: true` keeps subjects off its CPUs, and gives them others.
#include "planner/lanes.hpp"
#include "world.hpp"

namespace affinityd::planner {
namespace {

using machine::Setting;
using test::plain;
using test::thread;
using test::World;
using State = ThreadPlan::State;

const char* const isolating = "match: {comm: a}\ncpus: \"2-3\"\nisolate: true\n";
const Subject work = KernelMask{KernelMask::Of::work};

inventory::Thread kernel_thread(const std::string& comm, const CpuSet& allowed) {
    auto made = thread(50, comm, allowed);
    made.flags = 0x00200000; // PF_KTHREAD
    return made;
}

const QueueTarget& target_of(const World& world, const Subject& subject) {
    return *std::ranges::find(world.placements.queues, subject, &QueueTarget::subject);
}

/// Sets the subject as the next pass does, and notes what it had.
std::string settle(World& world, const Subject& subject, CpuSet& present) {
    const auto action = plan_queue(world.planning(), target_of(world, subject), present);
    if (action) world.book.apply(*action, action->to);
    if (action) present = action->to.cpus();
    return present.to_list();
}

TEST(Isolation, AMaskKeepsItsOtherCpusOrGetsAllOthersOfTheMachine) {
    for (const auto& [before, after] :
         {std::pair{"0-7", "0-1,4-7"}, {"1-2", "1"}, {"3", "0-1,4-7"}, {"5", "5"}}) {
        World world({isolating}, plain());
        auto mask = CpuSet::parse_list(before).value();
        EXPECT_EQ(settle(world, work, mask), after) << before;
        EXPECT_EQ(settle(world, work, mask), after) << before << ", again";
    }
}

TEST(Isolation, RpsToIsolatedCpusAloneIsOff) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    World world({isolating}, machine);
    const Subject map = SteeringMask{"devices/pci0000:00/eth0", machine::Direction::rx, 0, "eth0"};
    for (const auto& [before, after] : {std::pair{"2-3", ""}, {"0-3", "0-1"}, {"", ""}}) {
        auto mask = CpuSet::parse_list(before).value();
        world.book.records.clear();
        EXPECT_EQ(settle(world, map, mask), after) << before;
    }
}

TEST(Isolation, CpusComeBackWhenFewerAreIsolated) {
    const std::vector<std::string> both{isolating, "match: {comm: b}\ncpus: \"5\"\nisolate: true\n"};
    World world(both, plain());
    auto mask = CpuSet::range(0, 7);
    EXPECT_EQ(settle(world, work, mask), "0-1,4,6-7");
    world.reload({both[1]});
    EXPECT_EQ(settle(world, work, mask), "0-4,6-7");
    mask = CpuSet{1};
    EXPECT_EQ(settle(world, work, mask), "1") << "another program has set it, and it is on none of them";
    world.reload({});
    EXPECT_EQ(std::ranges::count(world.placements.queues, work, &QueueTarget::subject), 0);
}

TEST(Isolation, InterruptsThatAPolicyPlacesStayWithIt) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 2, 30);
    World world({isolating, "affinity: irq\nnics: [eth0]\ncpus: \"4-5\"\n"}, machine);
    const auto& targets = world.placements.queues;
    const auto is_irq = [](const QueueTarget& target) {
        return std::holds_alternative<IrqMask>(target.subject);
    };
    EXPECT_EQ(std::ranges::count_if(targets, is_irq), 4);
    const std::vector all(targets.begin(), targets.end());
    for (const auto& target : all) {
        if (!is_irq(target)) continue;
        const auto& first = decider(world.placements, target, [](auto) { return false; });
        EXPECT_EQ(first.policy, "p1");
        EXPECT_TRUE(first.off.empty());
        const auto& later = decider(world.placements, target, [](auto name) { return name == "p1"; });
        if (target.rank > 0) {
            EXPECT_EQ(later.policy, "p0") << "while p1 is released";
        }
    }
}

TEST(Isolation, LinesThatCannotMoveCountWhereTheyAre) {
    for (const auto& [cpu, is_told] : {std::pair{3U, true}, {5U, false}}) {
        auto machine = plain();
        auto& line = machine.irqs.irqs.emplace_back();
        line.number = 9;
        line.actions = {"timer"};
        line.requested = CpuSet::range(0, 7);
        line.effective = CpuSet{cpu};
        line.writable = false;
        const World world({isolating}, machine);
        const Subject subject = IrqMask{"", "timer", 0, 9};
        EXPECT_EQ(std::ranges::count(world.placements.queues, subject, &QueueTarget::subject),
                  is_told ? 1 : 0);
    }
}

TEST(Isolation, KernelThreadsAreKeptOffAndGetTheirMasksBack) {
    World world({isolating}, plain());
    for (const auto& [comm, before, after] :
         {std::tuple{"kauditd", "0-7", "0-1,4-7"}, {"rcuop/2", "2", "2"}, {"irq/9-acpi", "0-7", "0-7"}}) {
        auto task = kernel_thread(comm, CpuSet::parse_list(before).value());
        EXPECT_EQ(world.settle(task, std::nullopt), after) << comm;
        world.reload({"match: {comm: a}\ncpus: \"2-3\"\nexclusive: true\n"});
        EXPECT_EQ(world.settle(task, std::nullopt), before)
            << comm << ": exclusive moves tasks of users only";
        world.reload({isolating});
    }
}

} // namespace
} // namespace affinityd::planner
