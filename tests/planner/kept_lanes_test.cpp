// SPDX-License-Identifier: Apache-2.0
// Lanes of several policies: where interrupts of few queues go, and what the birth of a worker moves.
#include "world.hpp"

#include <functional>
#include <map>
#include <random>
#include <set>

namespace affinityd::planner {
namespace {

using test::World;

/// Eight CPUs without SMT in one node, and as many interfaces of so many queues.
machine::Machine eight(unsigned nics, unsigned queues) {
    machine::Machine machine;
    auto& topology = machine.topology;
    const CpuSet all = CpuSet::range(0, 7);
    topology.possible = topology.present = topology.online = topology.housekeeping = all;
    topology.packages.push_back(all);
    topology.nodes.push_back({0, all, 1U << 30, {}});
    topology.caches.push_back({3, topology::Cache::Type::unified, 1U << 20, all});
    for (const unsigned cpu : all) {
        topology.cores.push_back({cpu});
        topology.cpus.push_back({cpu, 0, {}, {}, static_cast<int>(cpu), 0, {}, {cpu}});
    }
    for (unsigned i = 0; i < nics; ++i) {
        test::add_nic(machine, "eth" + std::to_string(i), 0, queues, 40 + i * 10);
        machine.nics.back().local_cpus = all;
    }
    return machine;
}

std::vector<std::string> policies_of(unsigned count, const std::string& more = "") {
    std::vector<std::string> texts;
    for (unsigned i = 0; i < count; ++i)
        texts.push_back("match: {comm: a" + std::to_string(i) + "}\naffinity: full\nbind: cpu\n" + more +
                        "nics: [eth" + std::to_string(i) + "]\n");
    return texts;
}

/// Each policy has so many workers.
NicUsage workers(const std::vector<unsigned>& counts) {
    NicUsage usage;
    for (unsigned i = 0; i < counts.size(); ++i)
        usage["p" + std::to_string(i)][{"eth" + std::to_string(i)}] = counts[i];
    return usage;
}

/// CPU -> interrupts that go there.
std::map<std::string, int> arrivals(const Placements& placements) {
    std::map<std::string, int> cpus;
    for (const auto& target : placements.queues)
        if (std::holds_alternative<IrqMask>(target.subject)) ++cpus[target.wanted.to_string()];
    return cpus;
}

/// How many interrupts of other policies than this one go elsewhere than before.
int others_moved(const Placements& before, const Placements& after, const std::string& policy) {
    int moved = 0;
    for (const auto& target : after.queues) {
        if (target.policy == policy || !std::holds_alternative<IrqMask>(target.subject)) continue;
        const auto same = std::ranges::find(before.queues, target.subject, &QueueTarget::subject);
        moved += same == before.queues.end() || same->wanted != target.wanted ? 1 : 0;
    }
    return moved;
}

TEST(Lanes, InterruptsOfOneQueueEachGoToDifferentCores) {
    for (const std::string more : {"", "separate: true\n"})
        for (const unsigned tasks : {2U, 4U, 8U}) {
            const World world(policies_of(6, more), eight(6, 1), workers(std::vector<unsigned>(6, tasks)));
            EXPECT_GE(arrivals(world.placements).size(), tasks == 8 && !more.empty() ? 4U : 5U)
                << more << tasks;
        }
}

TEST(Lanes, InterruptsOfFourBusyServersDoNotMeetOnTwoCores) {
    const World world(policies_of(4), eight(4, 2), workers({8, 8, 8, 8}));
    const auto cpus = arrivals(world.placements);
    EXPECT_EQ(cpus.size(), 8U);
}

TEST(Lanes, ABirthMovesNoInterruptOfOthers) {
    const World world(policies_of(3), eight(3, 2), workers({2, 2, 2}));
    auto now = world.placements;
    const auto first = arrivals(now);
    for (const unsigned count : {3U, 4U, 5U, 4U, 3U, 2U}) {
        auto next = test::recompile(world.set, world.machine, workers({count, 2, 2}), now);
        EXPECT_EQ(others_moved(now, next, "p0"), 0) << count;
        now = std::move(next);
    }
    EXPECT_EQ(arrivals(now), first) << "who grew and shrank has its first lanes again";
}

/// Two nodes of so many CPUs without SMT, and as many interfaces of eight queues, on either node in turn.
machine::Machine two_nodes(unsigned cpus, unsigned nics) {
    auto machine = eight(nics, 8);
    auto& topology = machine.topology;
    topology = {};
    const CpuSet all = CpuSet::range(0, 2 * cpus - 1);
    topology.possible = topology.present = topology.online = topology.housekeeping = all;
    for (unsigned node = 0; node < 2; ++node) {
        const CpuSet own = CpuSet::range(node * cpus, (node + 1) * cpus - 1);
        topology.packages.push_back(own);
        topology.nodes.push_back(
            {node, own, 1U << 30, node == 0 ? std::vector{10U, 21U} : std::vector{21U, 10U}});
        topology.caches.push_back({3, topology::Cache::Type::unified, 1U << 20, own});
        for (const unsigned cpu : own) {
            topology.cores.push_back({cpu});
            topology.cpus.push_back(
                {cpu, static_cast<int>(node), {}, {}, static_cast<int>(cpu), node, {}, {cpu}});
        }
    }
    for (unsigned i = 0; i < nics; ++i) {
        machine.nics[i].ifindex = i + 2;
        machine.nics[i].node = i % 2;
        machine.nics[i].local_cpus = topology.nodes[i % 2].cpus;
    }
    return machine;
}

/// The changes to others' interrupts by births and deaths of workers, up to eight of each policy.
struct Unrest {
    int events = 0, moved = 0;
};

Unrest unrest(const std::vector<std::string>& texts, const machine::Machine& machine, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<unsigned> counts(texts.size(), 2);
    const World world(texts, machine, workers(counts));
    auto now = world.placements;
    Unrest sum;
    for (int i = 0; i < 100; ++i) {
        const auto who = random() % counts.size();
        const bool is_birth = random() % 2 == 0;
        if (counts[who] == (is_birth ? 8U : 1U)) continue;
        counts[who] += is_birth ? 1U : -1U;
        auto next = test::recompile(world.set, machine, workers(counts), now);
        const int moved = others_moved(now, next, "p" + std::to_string(who));
        ++sum.events;
        sum.moved += moved;
        now = std::move(next);
    }
    return sum;
}

TEST(Lanes, BirthsAndDeathsMoveNoInterruptOfOthers) {
    for (const unsigned nics : {6U, 8U})
        for (const unsigned cpus : {8U, 16U})
            for (const unsigned seed : {5U, 6U}) {
                const auto sum = unrest(policies_of(nics), two_nodes(cpus, nics), seed);
                ASSERT_GT(sum.events, 50);
                // On a full machine a death leaves a core to a reader that shared one.
                EXPECT_LE(sum.moved, cpus == 8 ? sum.events : 0)
                    << nics << " NICs, " << cpus << " CPUs a node, seed " << seed;
            }
}

TEST(Lanes, ABirthMovesNoInterruptOfOthersThatAreApartFromTheirTasks) {
    const World world(policies_of(6, "separate: true\n"), two_nodes(12, 6), workers({2, 2, 2, 2, 2, 2}));
    auto now = world.placements;
    const auto first = arrivals(now);
    for (const unsigned count : {3U, 4U, 3U, 2U, 1U, 2U}) {
        auto next = test::recompile(world.set, world.machine, workers({count, 2, 2, 2, 2, 2}), now);
        EXPECT_EQ(others_moved(now, next, "p0"), 0) << count;
        now = std::move(next);
    }
    EXPECT_EQ(arrivals(now).size(), first.size()) << "who grew and shrank has as many CPUs for them";
}

TEST(Lanes, AnInterruptApartFromItsTasksMovesWhenItsCpuGoesOfflineAndNoOtherDoes) {
    auto machine = two_nodes(12, 1);
    const World world(policies_of(1, "separate: true\n"), machine, workers({2}));
    const auto first = arrivals(world.placements);
    ASSERT_EQ(first.size(), 2U);
    const auto gone = static_cast<unsigned>(std::stoul(first.rbegin()->first));
    machine.topology.online -= CpuSet{gone};
    const auto next = test::recompile(world.set, machine, workers({2}), world.placements);
    EXPECT_FALSE(arrivals(next).contains(first.rbegin()->first));
    EXPECT_TRUE(arrivals(next).contains(first.begin()->first));
    EXPECT_EQ(arrivals(next).size(), 2U);
}

TEST(Lanes, AnInterfaceThatIsNamedIsNotTakenByOneThatOnlyListens) {
    World world({"match: {comm: a}\naffinity: full\nnics: auto\n",
                 "match: {comm: b}\naffinity: full\nnics: [eth0]\n"},
                eight(2, 2), {{"p0", {{{"eth0", "eth1"}, 1}}}, {"p1", {{{"eth0"}, 4}}}});
    for (const auto& target : world.placements.queues)
        EXPECT_EQ(target.policy, target.nic == "eth0" ? "p1" : "p0");
}

/// Names of the lanes of an interface's group.
std::string lanes_of(const Placements& placements, const std::string& policy, const std::string& nic) {
    std::string text;
    const auto* resolved = placements.find(policy);
    if (resolved != nullptr && resolved->nic(nic) != nullptr)
        for (const auto& seat : test::seats(*resolved->nic(nic)))
            text += (text.empty() ? "" : ";") + seat.to_list();
    return text;
}

TEST(Lanes, TasksBeyondTheCoresThatThereAreMoveNoLane) {
    auto texts = policies_of(1);
    texts.emplace_back("match: {comm: b}\naffinity: irq\ncpus: \"0-2\"\nnics: [eth1]\n");
    World world(texts, eight(2, 8), workers({9}));
    auto now = world.placements;
    const auto lanes = lanes_of(now, "p0", "eth0");
    ASSERT_EQ(std::ranges::count(lanes, ';'), 7) << lanes;
    for (const unsigned count : {8U, 9U, 16U, 8U}) {
        now = test::recompile(world.set, world.machine, workers({count}), now);
        EXPECT_EQ(lanes_of(now, "p0", "eth0"), lanes) << count;
    }
    now = test::recompile(world.set, world.machine, workers({7}), now);
    EXPECT_EQ(std::ranges::count(lanes_of(now, "p0", "eth0"), ';'), 6);
}

std::vector<std::string> beside_a_busy_core() {
    std::vector<std::string> texts;
    for (const auto* nic : {"eth0", "eth1", "eth2"})
        texts.push_back(std::string("match: {comm: a}\naffinity: full\nbind: core\ncpus: \"1-7\"\nnics: [") +
                        nic + "]\n");
    texts.emplace_back("affinity: irq\ncpus: \"0\"\nnics: [eth3, eth4, eth5]\n");
    return texts;
}

/// Four servers of a master and two workers each. The first one's cpuset is written anew again and again, and
/// the others share the rest. All of them are idle.
TEST(Lanes, IdleReadersShareNoSeatWhileAnotherIsFreeWhateverTheirCpusetsAre) {
    std::mt19937 random(56);
    const CpuSet all = CpuSet::range(0, 7);
    const NicNames nics{"eth0"};
    World world({"match: {comm: a}\naffinity: full\nspread: core\nbind: core\nnics: auto\n"},
                two_nodes(4, 1));
    struct Server {
        std::vector<inventory::Thread> processes; // the master first
        CpuSet cpuset;
    };
    std::vector<Server> servers(4);
    for (int i = 0; i < 12; ++i)
        servers[static_cast<std::size_t>(i / 3)].processes.push_back(test::thread(100 + i, "a", all));
    const auto look = [&](Server& server) {
        const auto master = server.processes.front().id;
        for (auto& process : server.processes) {
            const bool is_master = process.id == master;
            world.apply(process, plan_thread(world.planning(),
                                             {.id = process.id,
                                              .policy = 0,
                                              .nics = is_master ? nullptr : &nics,
                                              .cpuset = &server.cpuset,
                                              .parent = is_master ? TaskId{} : master},
                                             {process}));
            for (unsigned table = 0; table < 8; ++table)
                world.assignments.weigh(table, process.id, 0);
        }
    };
    for (int turn = 0; turn < 300; ++turn) {
        CpuSet own;
        for (unsigned count = 1 + random() % 4; own.count() < count;)
            own.insert(random() % 8);
        NicUsage usage;
        for (auto& server : servers) {
            server.cpuset = &server == &servers.front() ? own : all - own;
            usage["p0"][{nics, 0, server.cpuset}] += 2;
            if (random() % 2 == 0) look(server); // before it is known which readers there are
        }
        world.placements = test::recompile(world.set, world.machine, usage, world.placements);
        for (int pass = 0; pass < 2; ++pass)
            for (auto& server : servers)
                look(server);
        std::map<unsigned, unsigned> readers;
        for (auto& server : servers)
            for (std::size_t i = 1; i < 3; ++i)
                if (&server != &servers.front()) ++readers[server.processes[i].allowed.first()];
        ASSERT_EQ(readers.size(), std::min<std::size_t>(6, 8 - own.count())) << turn;
    }
}

TEST(Lanes, ServersWhoseTasksBecomeKnownAreOnDifferentCoresThoughAnotherCoreCannotBeHelped) {
    const World world(beside_a_busy_core(), eight(6, 8)); // as a daemon starts: no tasks are known
    const auto next = test::recompile(world.set, world.machine, workers({1, 1, 1}), world.placements);
    EXPECT_EQ(lanes_of(next, "p0", "eth0"), "1");
    EXPECT_EQ(lanes_of(next, "p1", "eth1"), "2");
    EXPECT_EQ(lanes_of(next, "p2", "eth2"), "3");
}

TEST(Lanes, ACoreThatCannotBeHelpedHidesNoneThatCan) {
    auto small = eight(6, 8); // all servers came under policy while two CPUs were there
    small.topology.online = CpuSet::range(0, 1);
    small.topology.cpus.resize(2);
    small.topology.cores.resize(2);
    const World world(beside_a_busy_core(), small, workers({1, 1, 1}));
    ASSERT_EQ(lanes_of(world.placements, "p2", "eth2"), "1");
    const auto next = test::recompile(world.set, eight(6, 8), workers({1, 1, 1}), world.placements);
    std::set<std::string> cores;
    for (const auto* nic : {"eth0", "eth1", "eth2"})
        cores.insert(lanes_of(next, std::string("p") + nic[3], nic));
    EXPECT_EQ(cores.size(), 3U);
}

/// Two policies: one whose interfaces change, and one on two cores of its own.
struct Neighbours : testing::Test {
    const std::vector<std::string> texts{"match: {comm: a}\naffinity: full\nbind: cpu\nnics: auto\n",
                                         "match: {comm: b}\naffinity: full\nbind: cpu\nnics: [eth2]\n"};
    static NicUsage served(const NicNames& names) { return {{"p0", {{names, 2}}}, {"p1", {{{"eth2"}, 2}}}}; }
};

TEST_F(Neighbours, APolicyStaysOnItsLanesWhenMoreOrFewerInterfacesServeIt) {
    const World world(texts, eight(3, 4), served({"eth0"}));
    const auto first = lanes_of(world.placements, "p0", "eth0");
    const auto both = test::recompile(world.set, world.machine, served({"eth0", "eth1"}), world.placements);
    EXPECT_EQ(lanes_of(both, "p0", "eth0"), first);
    EXPECT_EQ(lanes_of(both, "p0", "eth1"), first);
    EXPECT_EQ(others_moved(world.placements, both, "p0"), 0);
    const auto other = test::recompile(world.set, world.machine, served({"eth1"}), both);
    EXPECT_EQ(lanes_of(other, "p0", "eth1"), first);
    const auto again = test::recompile(world.set, world.machine, served({"eth0"}), both);
    EXPECT_EQ(lanes_of(again, "p0", "eth0"), first);
}

/// An interface that was there with its queues, and is not now.
struct Absence {
    const char* name;
    std::function<void(machine::Machine&, NicUsage&)> begin, end;
};

const std::vector<Absence>& absences() {
    using machine::Machine;
    static const std::vector<Absence> all{
        {"its link is down",
         [](Machine& machine, NicUsage&) {
             machine.nics[1].queues.clear();
             machine.nics[1].msi_irqs.clear();
             machine.irqs.irqs.erase(machine.irqs.irqs.begin() + 4, machine.irqs.irqs.begin() + 8);
             link_vectors(machine);
         },
         [](Machine&, NicUsage&) {}},
        {"it is unplugged",
         [](Machine& machine, NicUsage&) {
             machine.nics.erase(machine.nics.begin() + 1);
             link_vectors(machine);
         },
         [](Machine& machine, NicUsage&) { machine.nics[1].ifindex = 17; }},
        {"it serves no task", [](Machine&, NicUsage& usage) { usage.erase("p1"); },
         [](Machine&, NicUsage&) {}}};
    return all;
}

TEST(Lanes, AnInterfaceThatIsBackHasTheLanesThatItHad) {
    auto texts = policies_of(3);
    texts[1] = "match: {comm: a1}\naffinity: full\nbind: cpu\nnics: auto\n";
    for (const auto& absence : absences()) {
        auto machine = eight(3, 4);
        for (unsigned i = 0; i < 3; ++i)
            machine.nics[i].ifindex = i + 2;
        const World world(texts, machine, workers({2, 2, 2}));
        ASSERT_EQ(lanes_of(world.placements, "p1", "eth1"), "4;5");
        auto without = machine;
        auto served = workers({2, 2, 2});
        absence.begin(without, served);
        auto now = test::recompile(world.set, without, served, world.placements);
        EXPECT_EQ(now.find("p1")->nics.size(), 0U) << absence.name;
        absence.end(machine, served);
        now = test::recompile(world.set, machine, workers({2, 2, 2}), now);
        EXPECT_EQ(lanes_of(now, "p1", "eth1"), "4;5") << absence.name;
    }
}

TEST_F(Neighbours, APolicyStaysOnItsLanesWhenItsInterfaceIsRenamed) {
    for (const bool is_virtual : {false, true}) {
        auto machine = eight(3, 4);
        for (unsigned i = 0; i < 3; ++i) {
            machine.nics[i].ifindex = i + 2;
            if (is_virtual) machine.nics[i].device.clear();
        }
        const World world(texts, machine, served({"eth0"}));
        const auto first = lanes_of(world.placements, "p0", "eth0");
        ASSERT_NE(first, "");
        machine.nics[0].name = "lan0";
        const auto next = test::recompile(world.set, machine, served({"lan0"}), world.placements);
        EXPECT_EQ(lanes_of(next, "p0", "lan0"), first);
    }
}

/// As eight(), but two CPUs a core: n and n + 8.
machine::Machine with_siblings(const CpuSet& online) {
    auto machine = eight(1, 4);
    auto& topology = machine.topology;
    topology.possible = topology.present = CpuSet::range(0, 15);
    topology.online = topology.housekeeping = online;
    topology.packages = {online};
    topology.nodes = {{0, online, 1U << 30, {}}};
    topology.caches = {{3, topology::Cache::Type::unified, 1U << 20, online}};
    topology.cores.clear();
    topology.cpus.clear();
    for (unsigned core = 0; core < 8; ++core)
        if (const CpuSet cpus = CpuSet{core, core + 8} & online; !cpus.empty())
            topology.cores.push_back(cpus);
    for (const unsigned cpu : online)
        topology.cpus.push_back(
            {cpu, 0, {}, {}, static_cast<int>(cpu % 8), 0, {}, CpuSet{cpu % 8, cpu % 8 + 8} & online});
    machine.nics[0].local_cpus = online;
    return machine;
}

TEST(Lanes, ACpuThatGoesOfflineMovesNoQueueOfOtherCores) {
    const CpuSet all = CpuSet::range(0, 15);
    const std::vector<std::string> texts{"match: {comm: a}\naffinity: full\nbind: core\nnics: [eth0]\n"};
    const World world(texts, with_siblings(all), workers({4}));
    ASSERT_EQ(lanes_of(world.placements, "p0", "eth0"), "0,8;1,9;2,10;3,11");
    const auto without_sibling =
        test::recompile(world.set, with_siblings(all - CpuSet{8}), workers({4}), world.placements);
    EXPECT_EQ(lanes_of(without_sibling, "p0", "eth0"), "0;1,9;2,10;3,11");
    const auto back = test::recompile(world.set, with_siblings(all), workers({4}), without_sibling);
    EXPECT_EQ(lanes_of(back, "p0", "eth0"), "0,8;1,9;2,10;3,11");
    const auto without_core =
        test::recompile(world.set, with_siblings(all - CpuSet{1, 9}), workers({4}), back);
    EXPECT_EQ(lanes_of(without_core, "p0", "eth0"), "0,8;2,10;3,11;4,12");
}

TEST(Lanes, OnSomeIsolatedCpusALaneHasOneOfThemOrNone) {
    auto machine = with_siblings(CpuSet::range(0, 15));
    machine.topology.isolated = CpuSet{2, 3, 10, 11};
    for (const std::string bind : {"core", "llc"}) {
        const World world(
            {"match: {comm: a}\naffinity: full\nbind: " + bind + "\ncpus: \"1-3,9-11\"\nnics: [eth0]\n"},
            machine, workers({3}));
        EXPECT_EQ(lanes_of(world.placements, "p0", "eth0"), "1,9;2;3") << bind;
        for (const auto& lane : world.placements.policies[0].nics.front().rows.front().slots)
            EXPECT_TRUE(lane.mask.count() == 1 || lane.mask == (CpuSet{1, 9})) << lane.mask.to_list();
        EXPECT_EQ(std::ranges::count(world.placements.problems, "2-3,10-11", &Problem::subject), 1) << bind;
    }
}

TEST(Lanes, OnIsolatedCpusEachTaskHasOneCpu) {
    auto machine = with_siblings(CpuSet::range(0, 15));
    machine.topology.isolated = CpuSet{2, 3, 10, 11};
    for (const std::string bind : {"core", "llc"}) {
        const World world(
            {"match: {comm: a}\naffinity: full\nbind: " + bind + "\ncpus: \"2-3,10-11\"\nnics: [eth0]\n"},
            machine, workers({2}));
        EXPECT_EQ(lanes_of(world.placements, "p0", "eth0"), "2;3") << bind;
        EXPECT_EQ(std::ranges::count(world.placements.problems, "2-3,10-11", &Problem::subject), 1) << bind;
    }
}

} // namespace
} // namespace affinityd::planner
