// SPDX-License-Identifier: Apache-2.0
#include "planner/steering.hpp"
#include "world.hpp"

#include <cerrno>
#include <expected>
#include <memory>

namespace affinityd::planner {
namespace {

using inventory::AcceptSocket;
using inventory::AcceptSockets;
using test::plain;
using test::thread;
using test::World;

constexpr auto workers_policy =
    "match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\nbind: core\nsteer: accept\n";
const std::vector<std::uint8_t> port_80{80}, port_443{443 & 255};

AcceptSocket listener(std::uint64_t cookie, std::vector<int> threads,
                      std::vector<std::uint8_t> bound_to = port_80) {
    return {cookie, 6, 80, std::move(bound_to), true, -1, std::move(threads)};
}

AcceptSockets process(int pid, std::vector<AcceptSocket> sockets) {
    return {{pid, static_cast<std::uint64_t>(pid) * 10}, 1, std::move(sockets), 0};
}

using Arrival = std::expected<unsigned, NotSteered>;

/// Each thread's lane is the CPU of its number.
Arrival by_number(const TaskId&, int thread) { return static_cast<unsigned>(thread); }

ListenerPlan plan(const std::vector<AcceptSockets>& processes, const ArrivalCpu& arrives = by_number,
                  const UndoLookup& undo = test::NoUndo(), const std::set<std::uint64_t>& given_up = {}) {
    std::vector<const AcceptSockets*> all;
    for (const auto& one : processes)
        all.push_back(&one);
    return plan_listeners("web", all, arrives, undo, given_up);
}

using Left = std::map<NotSteered, std::size_t>;

TEST(Steering, EachWorkersOwnListenerGetsTheCpuOfItsLane) {
    const auto planned = plan({process(2, {listener(102, {2})}), process(1, {listener(101, {1})})});
    ASSERT_EQ(planned.targets.size(), 2U);
    EXPECT_EQ(planned.targets[0].subject, (ListenerCpu{101}));
    EXPECT_EQ(planned.targets[0].subject.process, 1);
    EXPECT_EQ(planned.targets[0].wanted, Setting(CpuSet{1}));
    EXPECT_EQ(planned.targets[0].policy, "web");
    EXPECT_EQ(planned.targets[1].wanted, Setting(CpuSet{2}));
    EXPECT_TRUE(planned.left.empty());
}

TEST(Steering, ThreadsOfOneProcessAreWorkersToo) {
    const auto planned = plan({process(9, {listener(101, {3}), listener(102, {4})})});
    ASSERT_EQ(planned.targets.size(), 2U);
    EXPECT_EQ(planned.targets[0].thread, 3);
    EXPECT_EQ(planned.targets[1].wanted, Setting(CpuSet{4}));
}

TEST(Steering, ConnectionsComeToOneWorkerAloneIfNoOtherOfItsAddressHasItsCpu) {
    const auto target = [](int thread, std::uint8_t address, unsigned cpu) {
        return ListenerTarget{{100ULL + static_cast<unsigned>(thread), thread, 1, 6, 80},
                              CpuSet{cpu},
                              "web",
                              thread,
                              {10, 0, 0, address}};
    };
    const std::vector targets{target(1, 1, 0), target(2, 1, 1), target(3, 1, 1), target(4, 2, 0)};
    EXPECT_TRUE(has_own_arrivals(targets, 1)) << "what comes to 4 is another server's, of the same port";
    EXPECT_TRUE(has_own_arrivals(targets, 4));
    EXPECT_FALSE(has_own_arrivals(targets, 2)) << "3 takes some of them";
    EXPECT_FALSE(has_own_arrivals(targets, 9)) << "it takes none";
}

TEST(Steering, AddressesAreGroupsOfTheirOwn) {
    const auto planned = plan(
        {process(1, {listener(101, {1}), listener(201, {1}, port_443)}), process(2, {listener(102, {2})})});
    EXPECT_EQ(planned.targets.size(), 2U);
    EXPECT_EQ(planned.left, (Left{{NotSteered::single, 1}})) << "one listener of port 443";
}

TEST(Steering, AListenerWithoutReusePortIsInNoGroup) {
    auto one = listener(101, {1}), other = listener(102, {2});
    one.shares_port = other.shares_port = false;
    EXPECT_EQ(plan({process(1, {one}), process(2, {other})}).left, (Left{{NotSteered::no_group, 2}}));
}

TEST(Steering, WhatSeveralTasksTakeConnectionsFromIsLeftAndWithItItsWholeAddress) {
    const auto planned = plan({process(1, {listener(101, {1}), listener(102, {1})}),
                               process(2, {listener(101, {2}), listener(102, {})})});
    EXPECT_EQ(planned.left, (Left{{NotSteered::shared, 1}, {NotSteered::others, 1}}));
    EXPECT_TRUE(planned.targets.empty());
    EXPECT_EQ(planned.decided_against.size(), 2U);
    EXPECT_EQ(planned.left_of.at(1), (Left{{NotSteered::shared, 1}, {NotSteered::others, 1}}));
    EXPECT_EQ(planned.left_of.at(2), (Left{{NotSteered::shared, 1}}));
}

TEST(Steering, TwoGenerationsOfWorkersOnTheSameLanesAreSteered) {
    const auto by_generation = [](const TaskId&, int thread) -> Arrival {
        return static_cast<unsigned>(thread % 10);
    };
    const auto planned = plan({process(1, {listener(101, {1})}), process(2, {listener(102, {2})}),
                               process(11, {listener(101, {11})}), process(12, {listener(102, {12})})},
                              by_generation);
    ASSERT_EQ(planned.targets.size(), 2U);
    EXPECT_EQ(planned.targets[0].wanted, Setting(CpuSet{1}));
    EXPECT_EQ(planned.targets[1].wanted, Setting(CpuSet{2}));
}

TEST(Steering, WhatVeryManyTasksShareIsLeft) {
    std::vector<AcceptSockets> processes{process(50, {listener(102, {50})})};
    for (int pid = 1; pid < 40; ++pid)
        processes.push_back(process(pid, {listener(101, {pid})}));
    const auto same = [](const TaskId&, int) -> Arrival { return 3; };
    EXPECT_EQ(plan(processes, same).left, (Left{{NotSteered::shared, 1}, {NotSteered::others, 1}}));
}

TEST(Steering, WhoWasNotSeenStaysAsItIs) {
    const auto planned = plan({process(1, {listener(101, {})}), process(2, {listener(102, {2})})});
    EXPECT_EQ(planned.left, (Left{{NotSteered::not_seen, 1}}));
    EXPECT_EQ(planned.undecided.size(), 1U);
    EXPECT_TRUE(planned.decided_against.empty());
    EXPECT_EQ(planned.targets.size(), 1U);
}

/// It would get few connections, or none, if the others were told CPUs.
TEST(Steering, WhereOneWorkerHasNoLaneNobodyIsSteered) {
    const auto arrives = [](const TaskId&, int thread) -> Arrival {
        return thread == 2 ? Arrival(std::unexpected(NotSteered::no_lane)) : Arrival(1);
    };
    const auto planned =
        plan({process(1, {listener(101, {1})}), process(2, {listener(102, {2})}),
              process(3, {listener(203, {3}, port_443)}), process(4, {listener(204, {4}, port_443)})},
             arrives);
    EXPECT_EQ(planned.left, (Left{{NotSteered::no_lane, 1}, {NotSteered::others, 1}}));
    EXPECT_EQ(planned.targets.size(), 2U) << "another address is another matter";
    EXPECT_EQ(planned.decided_against.size(), 2U);
    const auto unseen = plan({process(1, {listener(101, {})}), process(2, {listener(102, {2})})}, arrives);
    EXPECT_EQ(unseen.left, (Left{{NotSteered::no_lane, 1}, {NotSteered::others, 1}}))
        << "nor does it stay told while nobody is seen with it";
}

TEST(Steering, WhileAWorkerSettlesThoseStaySteeredThatAre) {
    const auto arrives = [](const TaskId&, int thread) -> Arrival {
        return thread == 2 ? Arrival(std::unexpected(NotSteered::settling)) : Arrival(1);
    };
    test::Book book;
    book.records[ListenerCpu{101}] = {CpuSet{}, CpuSet{1}, CpuSet{1}, "web"};
    const auto planned = plan({process(1, {listener(101, {1})}), process(2, {listener(102, {2})}),
                               process(3, {listener(103, {3})})},
                              arrives, book);
    EXPECT_EQ(planned.left, (Left{{NotSteered::settling, 1}, {NotSteered::unknown, 1}}));
    ASSERT_EQ(planned.targets.size(), 1U);
    EXPECT_EQ(planned.targets[0].subject.cookie, 101U);
    EXPECT_TRUE(planned.decided_against.empty());
}

/// Two workers with a listener each, of so many on their address.
std::pair<inventory::AcceptSockets, inventory::AcceptSockets> two_beside(std::uint32_t all) {
    std::vector<inventory::LocalSocket> sockets(all);
    for (std::uint32_t i = 0; i < all; ++i) {
        sockets[i].inode = 901 + i;
        sockets[i].port = 80;
        sockets[i].state = inventory::SocketState::listen;
    }
    auto one = process(1, {listener(101, {1})}), other = process(2, {listener(102, {2})});
    one.sockets[0].inode = 901, other.sockets[0].inode = 902;
    one.held = {901}, other.held = {902};
    one.around = other.around =
        std::make_shared<const inventory::ListeningSockets>(inventory::ListeningSockets::of(sockets));
    return {one, other};
}

/// One in the hands of another server would get no connections any more.
TEST(Steering, WhereSomebodyElseListensOnTheAddressNobodyIsSteered) {
    using inventory::ListeningSockets;
    std::vector<inventory::LocalSocket> sockets(4);
    for (std::uint32_t i = 0; i < 4; ++i) {
        sockets[i].inode = 901 + i;
        sockets[i].port = i < 3 ? 80 : 443;
        sockets[i].state = inventory::SocketState::listen;
    }
    const auto around = std::make_shared<const ListeningSockets>(ListeningSockets::of(sockets));
    auto one = process(1, {listener(101, {1})}), other = process(2, {listener(102, {2})});
    one.sockets[0].inode = 901, other.sockets[0].inode = 902;
    one.held = {901}, other.held = {902};
    one.around = other.around = around;
    const auto beside = plan({one, other});
    EXPECT_EQ(beside.left, (Left{{NotSteered::others, 2}}));
    EXPECT_EQ(beside.decided_against.size(), 2U);
    auto master = process(3, {});
    master.held = {903};
    EXPECT_EQ(plan({one, other, master}).left, (Left{{NotSteered::unattended, 2}}))
        << "its own, for which nobody is seen to wait";
    EXPECT_EQ(plan({one}).left, (Left{{NotSteered::others, 1}})) << "the other two are not this policy's";
    auto unread = process(4, {});
    unread.code = EDQUOT;
    unread.knows_all = false;
    const auto unknown = plan({one, other, unread});
    EXPECT_EQ(unknown.left, (Left{{NotSteered::unknown, 2}, {NotSteered::refused, 1}}))
        << "it may be its own";
    EXPECT_TRUE(unknown.decided_against.empty()) << "so what is stays";
}

/// As it is while a worker starts again, or is busy: it would get few connections beside those that are told.
TEST(Steering, WhereNobodyIsSeenToTakeFromOneOfTheAddressNobodyNewIsSteered) {
    auto [one, other] = two_beside(3);
    other.held.push_back(903);
    const auto waiting = plan({one, other});
    EXPECT_EQ(waiting.left, (Left{{NotSteered::unattended, 2}}));
    EXPECT_EQ(waiting.undecided.size(), 2U);
    EXPECT_EQ(waiting.unattended, std::set<std::uint64_t>{903});
    test::Book book;
    for (const std::uint64_t cookie : {101U, 102U})
        book.records[ListenerCpu{cookie}] = {CpuSet{}, CpuSet{1}, CpuSet{1}, "web"};
    EXPECT_EQ(plan({one, other}, by_number, book).targets.size(), 2U) << "those that are steered stay so";
    const auto given_up = plan({one, other}, by_number, book, {903});
    EXPECT_EQ(given_up.left, (Left{{NotSteered::others, 2}})) << "it was waited for in vain";
    EXPECT_EQ(given_up.unattended, std::set<std::uint64_t>{903}) << "it is still there";
}

TEST(Steering, WhatIsNotKnownOfOneUserOrNamespaceIsNothingToOthers) {
    auto [one, other] = two_beside(2);
    one.user = other.user = 33;
    auto unread = process(4, {});
    unread.code = EDQUOT;
    unread.knows_all = false;
    unread.user = 1000;
    EXPECT_EQ(plan({one, other, unread}).targets.size(), 2U) << "another user's cannot be of this address";
    for (const uid_t user : {33U, 0U}) {
        unread.user = user;
        EXPECT_TRUE(plan({one, other, unread}).targets.empty()) << user;
    }
    unread.around = two_beside(1).first.around;
    EXPECT_EQ(plan({one, other, unread}).targets.size(), 2U) << "it is elsewhere";
}

TEST(Steering, TheSameAddressInAnotherNamespaceIsAnotherOne) {
    auto [one, other] = two_beside(2);
    auto elsewhere = process(3, {listener(103, {3})});
    elsewhere.sockets[0].inode = 901;
    elsewhere.held = {901};
    elsewhere.around = two_beside(1).first.around;
    const auto planned = plan({one, other, elsewhere});
    EXPECT_EQ(planned.targets.size(), 2U);
    EXPECT_EQ(planned.left, (Left{{NotSteered::single, 1}}));
}

TEST(Steering, WhatWasNotLookedAtIsCounted) {
    auto one = process(1, {listener(101, {1})}), other = process(2, {listener(102, {2})});
    other.left_out = 300;
    EXPECT_EQ(plan({one, other}).left, (Left{{NotSteered::too_many, 300}}));
}

TEST(Steering, WhatSomebodyElseHasToldACpuIsLeft) {
    auto told = listener(101, {1}), other = listener(102, {2});
    told.incoming_cpu = 5;
    other.incoming_cpu = 6;
    test::Book book;
    book.records[ListenerCpu{102}] = {CpuSet{}, CpuSet{6}, CpuSet{6}, "web"};
    const auto planned = plan({process(1, {told}), process(2, {other})}, by_number, book);
    EXPECT_EQ(planned.left, (Left{{NotSteered::set_already, 1}}));
    ASSERT_EQ(planned.targets.size(), 1U) << "what we told it ourselves counts for nothing";
    EXPECT_EQ(planned.targets[0].subject.cookie, 102U);
    other.incoming_cpu = 7;
    EXPECT_EQ(plan({process(1, {told}), process(2, {other})}, by_number, book).left,
              (Left{{NotSteered::set_already, 2}}))
        << "it was told another one after ours";
}

/// Its first call has not come back.
TEST(Steering, WhatWasToldNothingYetIsNotSteeredAlready) {
    auto [one, other] = two_beside(3);
    other.held.push_back(903);
    test::Book book;
    for (const std::uint64_t cookie : {101U, 102U})
        book.records[ListenerCpu{cookie}] = {CpuSet{}, CpuSet{1}, CpuSet{1}, "web", CpuSet{}};
    EXPECT_EQ(plan({one, other}, by_number, book).left, (Left{{NotSteered::unattended, 2}}));
    EXPECT_TRUE(plan({one, other}, by_number, book, {903}).still_told.empty());
    one.sockets[0].incoming_cpu = 1; // it has come back
    const auto planned = plan({one, other}, by_number, book);
    ASSERT_EQ(planned.targets.size(), 1U);
    EXPECT_EQ(planned.targets[0].subject.cookie, 101U);
    EXPECT_EQ(plan({one, other}, by_number, book, {903}).still_told, (std::map<int, std::size_t>{{1, 1}}));
}

TEST(Steering, WhatIsNotSteeredAnyMoreAndStillHasACpuFromUsIsCounted) {
    test::Book book;
    for (const std::uint64_t cookie : {101, 102, 104})
        book.records[ListenerCpu{cookie}] = {CpuSet{}, CpuSet{1}, CpuSet{1}, "web"};
    auto foreign = listener(104, {4}, port_443);
    foreign.incoming_cpu = 7;
    const auto planned = plan({process(1, {listener(101, {1}), listener(102, {1})}),
                               process(2, {listener(101, {2}), listener(103, {2})}), process(4, {foreign})},
                              by_number, book);
    EXPECT_EQ(planned.still_told, (std::map<int, std::size_t>{{1, 1}, {2, 1}}))
        << "103 was told nothing, 104 something by somebody else";
    EXPECT_TRUE(plan({process(1, {listener(101, {})}), process(2, {listener(102, {2})})}, by_number, book)
                    .still_told.empty())
        << "what is undecided stays";
}

TEST(Steering, ProcessesThatCannotBeReachedAreCounted) {
    auto forbidden = process(1, {}), ended = process(2, {});
    forbidden.code = EPERM;
    ended.code = ESRCH;
    const auto planned = plan({forbidden, ended});
    EXPECT_EQ(planned.left, (Left{{NotSteered::refused, 1}}));
    EXPECT_FALSE(planned.are_some_avoided);
    forbidden.code = EBUSY;
    EXPECT_TRUE(plan({forbidden, ended}).are_some_avoided);
}

AcceptSocket with(AcceptSocket socket, std::optional<std::size_t> accepted) {
    socket.accepted = accepted;
    return socket;
}

using Counted = std::map<std::vector<std::uint8_t>, AcceptShares::Counts>;

/// What is counted of the listeners that are to be steered.
Counted counted(const std::vector<AcceptSockets>& processes, const UndoLookup& undo = test::NoUndo()) {
    std::vector<const AcceptSockets*> all;
    for (const auto& one : processes)
        all.push_back(&one);
    return count_accepted(all, plan_listeners("web", all, by_number, undo).targets);
}

TEST(Steering, ConnectionsAreCountedWhereWorkersShareAnAddress) {
    EXPECT_EQ(counted({process(1, {with(listener(101, {1}), 10), with(listener(201, {1}, port_443), 99)}),
                       process(2, {with(listener(102, {2}), 30), with(listener(103, {3}), {})})}),
              (Counted{{port_80, {{101, 10}, {102, 30}, {103, std::nullopt}}}}));
}

TEST(Steering, EachAddressIsCountedByItself) {
    const std::vector<std::uint8_t> one{10, 0, 0, 1}, other{10, 0, 0, 2};
    EXPECT_EQ(counted({process(1, {with(listener(101, {1}, one), 1)}),
                       process(2, {with(listener(102, {2}, one), 2)}),
                       process(3, {with(listener(103, {3}, other), 3)}),
                       process(4, {with(listener(104, {4}, other), 4)})}),
              (Counted{{one, {{101, 1}, {102, 2}}}, {other, {{103, 3}, {104, 4}}}}));
}

TEST(Steering, ListenersThatAreNotSteeredAreNotCounted) {
    auto own_cpu = with(listener(103, {3}), 500);
    own_cpu.incoming_cpu = 3;
    const auto shared = with(listener(104, {4, 5}, port_443), 600);
    const auto unseen = with(listener(105, {}), 700);
    auto single = with(listener(106, {6}), 800);
    single.shares_port = false;
    EXPECT_EQ(counted({process(1, {with(listener(101, {1}), 10)}), process(2, {with(listener(102, {2}), 30)}),
                       process(3, {own_cpu, shared, unseen, single})}),
              (Counted{{port_80, {{101, 10}, {102, 30}}}}));
    EXPECT_TRUE(counted({process(1, {with(listener(101, {1}), 10)}), process(3, {own_cpu})}).empty())
        << "one alone shares with nobody";
}

TEST(Steering, AListenerThatAProcessHasTwiceIsCountedOnce) {
    auto again = with(listener(101, {1}), 10);
    again.number = 7;
    EXPECT_EQ(counted({process(1, {with(listener(101, {1}), 10), again}),
                       process(2, {with(listener(102, {2}), 30)}), process(3, {with(listener(102, {}), 2)})}),
              (Counted{{port_80, {{101, 10}, {102, 32}}}}));
}

TEST(ArrivalCpu, IsThatOfTheInterruptsOfTheTasksLane) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 2, 30);
    World world({workers_policy}, std::move(machine), {{"p0", {{{"eth0"}, 2}}}});
    const std::vector<std::string> nics{"eth0"};
    std::set<unsigned> cpus;
    for (int pid = 1; pid <= 2; ++pid) {
        auto worker = thread(pid, "a");
        world.settle(worker, 0, &nics);
        const auto cpu = arrival_cpu(world.placements.policies[0], world.assignments, worker.id);
        ASSERT_TRUE(cpu);
        EXPECT_TRUE(worker.allowed.contains(*cpu)) << worker.allowed.to_list();
        cpus.insert(*cpu);
    }
    EXPECT_EQ(cpus.size(), 2U);
    for (const auto& target : world.placements.queues) {
        if (!std::holds_alternative<IrqMask>(target.subject)) continue;
        EXPECT_TRUE(cpus.contains(target.wanted.cpus().first()))
            << "where an interrupt of the interface goes";
    }
    EXPECT_FALSE(arrival_cpu(world.placements.policies[0], world.assignments, {99, 990}))
        << "it has no place";
}

TEST(ArrivalCpu, OfInterruptsThatAreKeptApartIsTheirs) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 1, 30);
    World world({std::string(workers_policy) + "separate: true\n"}, std::move(machine),
                {{"p0", {{{"eth0"}, 1}}}});
    const std::vector<std::string> nics{"eth0"};
    auto worker = thread(1, "a");
    world.settle(worker, 0, &nics);
    const auto cpu = arrival_cpu(world.placements.policies[0], world.assignments, worker.id);
    ASSERT_TRUE(cpu);
    EXPECT_FALSE(worker.allowed.contains(*cpu));
    EXPECT_EQ(world.placements.policies[0].nics[0].interrupts[0], *cpu);
}

TEST(ArrivalCpu, OfALaneWhoseInterruptsAreAnotherPolicysIsNotKnown) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 2, 30);
    World world({workers_policy, "match: {comm: b}\naffinity: full\nnics: [eth0]\nbind: core\n"},
                std::move(machine), {{"p0", {{{"eth0"}, 1}}}, {"p1", {{{"eth0"}, 1}}}});
    const std::vector<std::string> nics{"eth0"};
    auto worker = thread(1, "b");
    world.settle(worker, 1, &nics);
    EXPECT_FALSE(arrival_cpu(world.placements.policies[1], world.assignments, worker.id));
    EXPECT_EQ(why_no_arrival(world.placements.policies[1]), NotSteered::of_others);
    EXPECT_EQ(why_no_arrival(world.placements.policies[0]), NotSteered::no_lane)
        << "its queues are placed: only this task has no lane";
}

/// Where the connections of each of four workers are to arrive, on an interface of two queues near all CPUs,
/// and the interrupts' CPUs of its lanes.
struct FourWorkers {
    std::map<unsigned, unsigned> workers_at; ///< by the CPU that listeners are told
    std::vector<unsigned> interrupts;
    std::vector<CpuSet> lanes;
};

FourWorkers four_workers(const std::string& more) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 2, 30);
    machine.nics.front().node.reset();
    machine.nics.front().local_cpus = machine.topology.online;
    World world({workers_policy + more}, std::move(machine), {{"p0", {{{"eth0"}, 4}}}});
    const auto& resolved = world.placements.policies[0];
    FourWorkers found{{}, resolved.nics.at(0).interrupts, {}};
    for (const auto& lane : resolved.nics[0].lanes)
        found.lanes.push_back(lane.cpus);
    const std::vector<std::string> nics{"eth0"};
    for (int pid = 1; pid <= 4; ++pid) {
        auto worker = thread(pid, "a");
        world.settle(worker, 0, &nics);
        const auto cpu = arrival_cpu(resolved, world.assignments, worker.id);
        if (cpu) ++found.workers_at[*cpu];
    }
    return found;
}

TEST(ArrivalCpu, WithoutRpsWorkersThatShareAQueueAreToldWhereItInterrupts) {
    const auto found = four_workers("steering: false\n");
    ASSERT_EQ(found.lanes.size(), 4U);
    EXPECT_EQ(found.workers_at,
              (std::map<unsigned, unsigned>{{found.interrupts[0], 2}, {found.interrupts[1], 2}}))
        << "nothing ever arrives on the other lanes";
}

TEST(ArrivalCpu, WhereRpsSpreadsIsTheLaneEvenIfInterruptsAreApart) {
    for (const auto* more : {"", "separate: true\n"}) {
        const auto found = four_workers(more);
        ASSERT_EQ(found.lanes.size(), 4U);
        for (const auto& lane : found.lanes) {
            const auto at = found.workers_at.find(lane.first());
            EXPECT_TRUE(at != found.workers_at.end() && at->second == 1) << more << lane.to_list();
        }
    }
}

/// Whether a policy for two workers is said to pin without steering, with this plan of its listeners.
bool is_told(const std::string& keys, const ListenerPlan* plan) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 2, 30);
    const World world({"match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\n" + keys},
                      std::move(machine), {{"p0", {{{"eth0"}, 2}}}});
    return is_pinned_only(world.placements.policies[0], plan);
}

TEST(PinnedOnly, IsWhoIsBoundToACoreWhileNothingBringsPacketsThere) {
    ListenerPlan shared, steered, unknown, settling, laneless, avoided;
    const ListenerPlan none;
    settling.left[NotSteered::settling] = 2;
    laneless.left[NotSteered::no_lane] = 2;
    shared.left[NotSteered::no_group] = 1;
    steered.left[NotSteered::single] = 1;
    steered.targets.push_back({ListenerCpu{101}, CpuSet{1}, "p0", 1});
    unknown.left[NotSteered::not_seen] = 2;
    EXPECT_TRUE(is_told("bind: core\n", &shared));
    EXPECT_TRUE(is_told("bind: cpu\nsteer: accept\n", &shared));
    EXPECT_TRUE(is_told("bind: core\nsteer: none\n", nullptr));
    EXPECT_FALSE(is_told("", &shared)) << "the cache group is wide enough";
    EXPECT_FALSE(is_told("bind: core\n", &steered));
    EXPECT_FALSE(is_told("bind: core\n", &unknown)) << "they may only not wait yet";
    EXPECT_FALSE(is_told("bind: core\n", &settling));
    avoided.left[NotSteered::refused] = 2;
    EXPECT_TRUE(is_told("bind: core\n", &avoided));
    avoided.are_some_avoided = true;
    EXPECT_FALSE(is_told("bind: core\n", &avoided)) << "only for a while";
    EXPECT_TRUE(is_told("bind: core\n", &laneless)) << "another policy decides over the interface";
    EXPECT_TRUE(is_told("bind: core\n", &none)) << "a server of datagrams has no listeners";
    EXPECT_FALSE(is_told("bind: core\n", nullptr)) << "nothing was read yet";
    EXPECT_FALSE(is_told("bind: core\nsteer: tasks\n", nullptr));
    EXPECT_FALSE(is_told("bind: core\nsteer: flows\n", nullptr));
}

TEST(PinnedOnly, IsToldWithHowMuchIsReadWhereItArrives) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 2, 30);
    const World world({workers_policy}, std::move(machine), {{"p0", {{{"eth0"}, 2}}}});
    EXPECT_NE(
        pinned_note(world.placements.policies[0]).find("bind: core and no steering: about one packet in 2"),
        std::string::npos);
}

/// What is said of a policy with these keys whose listeners of port 80 are told these CPUs: of one process,
/// or of one each.
std::string said_of(const std::string& keys, const std::vector<unsigned>& cpus, bool is_one_process) {
    const World world({"match: {comm: a}\naffinity: full\nnics: [eth0]\n" + keys}, plain(), {});
    ListenerPlan plan;
    for (std::size_t i = 0; i < cpus.size(); ++i) {
        const int worker = 10 + static_cast<int>(i);
        const ListenerCpu subject{101 + i, is_one_process ? 10 : worker, 1, 6, 80};
        plan.targets.push_back({subject, CpuSet{cpus[i]}, "p0", worker, port_80});
    }
    return alike_note(world.placements.policies[0], &plan);
}

TEST(AlikeListeners, AreToldWhereSteeringCannotChooseAmongThem) {
    const std::string threads =
        "port 80: packets for the workers of all 3 listeners arrive on CPU 2, so that steering cannot choose "
        "among them; threads of one process share a lane unless the policy says spread: core";
    EXPECT_EQ(said_of("", {2, 2, 2}, true), threads);
    EXPECT_EQ(said_of("", {2, 2, 2}, false), threads.substr(0, threads.find(';')))
        << "processes have one each";
    EXPECT_EQ(said_of("spread: core\n", {2, 2, 2}, true), threads.substr(0, threads.find(';')));
    EXPECT_EQ(said_of("", {2, 2, 1}, true), "");
    EXPECT_EQ(said_of("", {2}, true), "");
    EXPECT_EQ(said_of("", {}, true), "");
}

} // namespace
} // namespace affinityd::planner
