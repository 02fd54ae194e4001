// SPDX-License-Identifier: Apache-2.0
// How many queues an interface is to have, and where those go of which there are too many.
#include "planner/queue_counts.hpp"
#include "world.hpp"

#include <algorithm>
#include <cerrno>

namespace affinityd::planner {
namespace {

using netdev::Channels;
using test::plain;
using test::thread;
using test::World;

Channels combined(unsigned present, unsigned most) {
    Channels channels;
    channels.combined = present;
    channels.max_combined = most;
    channels.other = channels.max_other = 1;
    return channels;
}

Channels apart(unsigned rx, unsigned tx, unsigned most_rx, unsigned most_tx) {
    Channels channels;
    channels.rx = rx;
    channels.tx = tx;
    channels.max_rx = most_rx;
    channels.max_tx = most_tx;
    return channels;
}

std::string planned(const std::optional<Channels>& channels, std::size_t lanes) {
    netdev::Nic nic;
    nic.channels = channels;
    const auto plan = plan_queue_count(nic, lanes);
    return plan ? to_string(plan->wanted) : std::string(to_string(plan.error()));
}

TEST(QueueCounts, AreThoseOfTheLanesAsFarAsTheDeviceCan) {
    EXPECT_EQ(planned(combined(63, 63), 4), "combined 4");
    EXPECT_EQ(planned(combined(2, 63), 4), "combined 4");
    EXPECT_EQ(planned(combined(2, 3), 4), "combined 3");
    EXPECT_EQ(planned(combined(4, 4), 4), "combined 4");
    EXPECT_EQ(planned(apart(8, 8, 8, 8), 3), "rx 3 tx 3");
    EXPECT_EQ(planned(apart(1, 1, 8, 2), 3), "rx 3 tx 2");
    EXPECT_EQ(planned(apart(4, 1, 5, 0), 3), "rx 3 tx 1") << "what has no maximum cannot be changed";
    EXPECT_EQ(planned(combined(8, 8), 0), "combined 1") << "never none";
}

TEST(QueueCounts, AreSaidToServeAsManyLanesAsPacketsCanArriveOn) {
    netdev::Nic nic;
    nic.channels = apart(1, 1, 1, 8);
    const auto plan = plan_queue_count(nic, 3);
    ASSERT_TRUE(plan);
    EXPECT_EQ(to_string(plan->wanted), "rx 1 tx 3");
    EXPECT_EQ(to_string(plan->reason, "p0"), "queues: lanes: 3 lanes, of which the device can serve 1");
}

TEST(QueueCounts, AreLeftWhereItIsNotKnownWhatWouldBeRight) {
    const std::string not_known(to_string(NoQueueCount::not_known));
    EXPECT_EQ(planned(std::nullopt, 4), not_known);
    EXPECT_EQ(planned(Channels{}, 4), not_known);
    auto mixed = combined(4, 8);
    mixed.rx = 2;
    EXPECT_EQ(planned(mixed, 4), to_string(NoQueueCount::mixed));
    netdev::Nic silent;
    silent.channels_fault = ENODEV;
    EXPECT_EQ(plan_queue_count(silent, 4).error(), NoQueueCount::unread) << "it may be able to say it soon";
}

/// eth0 with as many queues, and as many tasks that it serves.
World served(const std::string& more, unsigned queues, unsigned tasks, bool is_known = true) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, queues, 30);
    if (is_known) machine.nics.back().channels = combined(queues, 8);
    NicUsage usage;
    if (tasks > 0) usage = {{"p0", {{{"eth0"}, tasks}}}};
    return {
        {"match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\n" + more}, std::move(machine), usage};
}

const Subject count_of_eth0 = QueueCount{"devices/pci0000:00/eth0", "eth0"};

const QueueTarget* target_of(const World& world) {
    const auto found = std::ranges::find(world.placements.queues, count_of_eth0, &QueueTarget::subject);
    return found == world.placements.queues.end() ? nullptr : &*found;
}

TEST(QueueCounts, ComeFirstAmongTheTargetsAndSayWhy) {
    const auto world = served("queues: lanes\n", 8, 2);
    const auto* target = target_of(world);
    ASSERT_NE(target, nullptr);
    EXPECT_EQ(target, &world.placements.queues.front()) << "the others are set anew after a reset";
    EXPECT_EQ(target->wanted, Setting(machine::Channels{2, 0, 0}));
    EXPECT_EQ(target->nic, "eth0");
    EXPECT_EQ(to_string(target->reason, "p0"), "queues: lanes: a queue for each of its 2 lanes");
    const auto more = served("queues: lanes\n", 2, 4);
    ASSERT_NE(target_of(more), nullptr);
    EXPECT_EQ(target_of(more)->wanted, Setting(machine::Channels{4, 0, 0}))
        << "or more, where there are fewer";
}

TEST(QueueCounts, AreWantedOnlyByPoliciesThatSaySoAndKnowTheirLanes) {
    EXPECT_EQ(target_of(served("", 8, 2)), nullptr);
    EXPECT_EQ(target_of(served("queues: keep\n", 8, 2)), nullptr);
    EXPECT_EQ(target_of(served("queues: lanes\n", 8, 0)), nullptr)
        << "lanes are only guessed from the queues";
    const auto recorded = served("queues: lanes\n", 8, 2, false);
    EXPECT_EQ(target_of(recorded), nullptr);
    EXPECT_TRUE(std::ranges::any_of(recorded.placements.problems, [](const Problem& problem) {
        return problem.subject == "eth0" && problem.message.starts_with("queues: lanes: ");
    }));
}

TEST(QueueCounts, AreInPlaceWhenTheDriverGrantsWhatItGrants) {
    auto world = served("queues: lanes\n", 8, 3);
    const auto& target = *target_of(world);
    const Setting eight(machine::Channels{8, 0, 0}), four(machine::Channels{4, 0, 0}),
        three(machine::Channels{3, 0, 0});
    EXPECT_EQ(target.wanted, three);
    EXPECT_FALSE(is_in_place(target, eight, world.book, world.placements.online));
    EXPECT_TRUE(is_in_place(target, three, world.book, world.placements.online));
    const auto action = plan_queue(world.planning(), target, eight);
    ASSERT_TRUE(action);
    EXPECT_EQ(action->to, three);
    world.book.apply(*action, four); // some drivers take powers of two only
    EXPECT_TRUE(is_in_place(target, four, world.book, world.placements.online));
    EXPECT_FALSE(is_in_place(target, eight, world.book, world.placements.online));
}

TEST(QueueCounts, TheSameLanesAreWantedWhateverTheNumberOfQueuesIs) {
    for (const unsigned queues : {1U, 2U, 3U, 8U}) {
        const auto world = served("queues: lanes\n", queues, 3);
        ASSERT_NE(target_of(world), nullptr) << queues;
        EXPECT_EQ(target_of(world)->wanted, Setting(machine::Channels{3, 0, 0})) << queues;
    }
}

/// Without `queues: lanes`, surplus queues interrupt the very cores of the workers: a connection that arrives
/// on one is its worker's, too.
TEST(SurplusQueues, GoToTheLanesOfWorkersOrBesideTheseInTheirCacheGroup) {
    for (const bool is_separate : {false, true}) {
        auto world = served(is_separate ? "separate: true\ncpus: 0-3\n" : "cpus: 0-1,4-5\n", 8, 2);
        const auto& lanes = world.placements.policies[0].nics.at(0);
        ASSERT_EQ(lanes.lanes.size(), 2U);
        std::map<unsigned, unsigned> queues_on;
        for (const auto& target : world.placements.queues)
            if (std::holds_alternative<IrqMask>(target.subject)) ++queues_on[target.wanted.cpus().first()];
        unsigned sum = 0;
        for (std::size_t i = 0; i < 2; ++i) {
            const unsigned cpu = lanes.interrupts.at(i);
            EXPECT_EQ(queues_on[cpu], is_separate && lanes.interrupts[0] == lanes.interrupts[1] ? 8U : 4U);
            sum += is_separate && lanes.interrupts[0] == lanes.interrupts[1] ? 4 : queues_on[cpu];
            EXPECT_TRUE(world.machine.topology.llc_of(lanes.lanes[i].cpus.first()).contains(cpu));
            EXPECT_TRUE(is_separate || lanes.lanes[i].cpus.contains(cpu));
        }
        EXPECT_EQ(sum, 8U) << "and none anywhere else";
    }
}

/// `full` without `bind` leaves workers the cache group of their lane, whether they are steered or not.
TEST(SurplusQueues, AndWithoutBindTheSchedulerMayFollowInsideTheCacheGroup) {
    auto world = served("cpus: 0-1,4-5\n", 8, 2);
    auto first = thread(1, "a"), second = thread(2, "a");
    EXPECT_EQ(world.settle(first), "0-1");
    EXPECT_EQ(world.settle(second), "4-5");
    auto wide = served("", 8, 2);
    auto third = thread(3, "a"), fourth = thread(4, "a");
    EXPECT_EQ(wide.settle(third), "0-3");
    EXPECT_EQ(wide.settle(fourth), "0-3");
}

} // namespace
} // namespace affinityd::planner
