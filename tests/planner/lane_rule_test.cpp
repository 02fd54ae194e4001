// SPDX-License-Identifier: Apache-2.0
// The sentences of the lane rule, each as a property of two thousand machines made by chance (seeds 1 to
// 2000).
#include "lives.hpp"
#include "planner/lanes.hpp"
#include "planner/place.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace affinityd::planner {
namespace {

using machine::Machine;
using test::Dice;

/// 1 to 1,024 CPUs, most of them few; SMT, one to eight nodes, cache groups as wide as a node or less.
Machine lane_machine(Dice& dice) {
    const unsigned threads = dice.within(1, 2), nodes = 1U << dice.upto(3), groups = dice.within(1, 4);
    const unsigned most = std::max(1U, (dice.once_in(40) ? 1024U : 96U) / (threads * nodes * groups));
    const unsigned cores = dice.within(1, most);
    const unsigned all = nodes * groups * cores;
    const bool siblings_last = dice.once_in(2);
    Machine machine;
    auto& topology = machine.topology;
    topology.possible = topology.present = CpuSet::range(0, all * threads - 1);
    topology.online = topology.possible;
    for (const unsigned cpu : topology.possible)
        if (dice.once_in(30) && topology.online.count() > 1) topology.online -= CpuSet{cpu};
    const auto siblings = [&](unsigned core) {
        CpuSet cpus;
        for (unsigned i = 0; i < threads; ++i)
            cpus.insert(siblings_last ? core + i * all : core * threads + i);
        return cpus & topology.online;
    };
    for (unsigned node = 0, number = 0; node < nodes; ++node) {
        CpuSet of_node;
        for (unsigned group = 0; group < groups; ++group) {
            CpuSet of_group;
            for (unsigned core = 0; core < cores; ++core, ++number) {
                const CpuSet cpus = siblings(number);
                if (cpus.empty()) continue;
                topology.cores.push_back(cpus);
                of_group |= cpus;
                for (const unsigned cpu : cpus)
                    topology.cpus.push_back(
                        {cpu, static_cast<int>(node), {}, {}, static_cast<int>(number), node, {}, cpus});
            }
            if (!of_group.empty())
                topology.caches.push_back({3, topology::Cache::Type::unified, 1U << 20, of_group});
            of_node |= of_group;
        }
        std::vector<unsigned> distance(nodes, 21);
        distance[node] = 10;
        if (nodes > 2) distance[node ^ 1U] = 12;
        topology.nodes.push_back({node, of_node, 1U << 30, distance});
        if (!of_node.empty()) topology.packages.push_back(of_node);
    }
    std::ranges::sort(topology.cpus, {}, &topology::Cpu::id);
    if (dice.once_in(4))
        for (const unsigned cpu : topology.online)
            if (dice.once_in(5) && topology.isolated.count() + 1 < topology.online.count())
                topology.isolated.insert(cpu);
    topology.housekeeping = topology.online - topology.isolated;
    for (unsigned i = 0, count = dice.within(1, 3); i < count; ++i) {
        const unsigned queues = dice.once_in(3) ? dice.within(1, 64) : dice.within(1, 12);
        test::add_nic(machine, "eth" + std::to_string(i), 0, queues, 5000 + i * 100);
        auto& nic = machine.nics.back();
        const auto cpus = topology.online.to_vector();
        const unsigned near = cpus[dice.upto(static_cast<unsigned>(cpus.size()) - 1)];
        nic.node = topology.find(near)->node;
        nic.local_cpus = dice.once_in(5) ? topology.online : topology.node_cpus_of(near);
        nic.ifindex = 2 + i;
    }
    for (auto& irq : machine.irqs.irqs)
        irq.requested = topology.online;
    link_vectors(machine);
    return machine;
}

CpuSet some_cpus(Dice& dice, const CpuSet& all) {
    const auto cpus = all.to_vector();
    const auto last = static_cast<unsigned>(cpus.size()) - 1;
    const unsigned from = dice.upto(last), to = dice.within(from, last);
    CpuSet chosen;
    for (unsigned i = from; i <= to; ++i)
        chosen.insert(cpus[i]);
    return chosen;
}

/// A policy with readers, beside threads that are none.
struct LaneCase {
    Machine machine;
    std::string text;
    NicUsage usage;
    bool is_irq = false;
};

LaneCase any_case(unsigned seed) {
    Dice dice(seed);
    LaneCase one{lane_machine(dice), "match: {comm: app}\n", {}};
    one.is_irq = dice.once_in(5);
    one.text +=
        one.is_irq ? "affinity: irq\nnics: [\"eth*\"]\n" : "affinity: full\nnics: [\"eth*\"]\nspread: core\n";
    const auto& online = one.machine.topology.online;
    if (dice.once_in(3)) one.text += "cpus: \"" + some_cpus(dice, online).to_list() + "\"\n";
    if (!dice.once_in(3)) one.text += "bind: " + dice.any({"core", "cpu", "llc", "node"}) + "\n";
    one.text += "threads:\n  - {name: log, leave: true}\n  - {name: bg, bind: set}\n"
                "  - {name: far, cpus: \"" +
                some_cpus(dice, online).to_list() + "\"}\n  - {name: acc, bind: llc}\n";
    const auto nics = static_cast<unsigned>(one.machine.nics.size());
    for (unsigned kinds = dice.within(1, 3), i = 0; i < kinds && !one.is_irq; ++i) {
        NicNames names;
        for (unsigned nic = 0; nic < nics; ++nic)
            if (dice.once_in(2)) names.push_back("eth" + std::to_string(nic));
        one.usage["p0"][{std::move(names), dice.once_in(4) ? dice.within(1, 4) : 0,
                         dice.once_in(3) ? some_cpus(dice, online) : CpuSet()}] += dice.within(1, 40);
    }
    return one;
}

/// A case, resolved.
struct Dealt {
    unsigned seed;
    LaneCase of;
    policy::PolicySet set;
    Placements placements;
    explicit Dealt(unsigned number)
        : seed(number), of(any_case(number)), set(test::policies({of.text})),
          placements(compile(set, of.machine, of.usage)) {}
    [[nodiscard]] const ResolvedPolicy& policy() const { return placements.policies[0]; }
    [[nodiscard]] const topology::Topology& topology() const { return of.machine.topology; }
    [[nodiscard]] CpuSet cores(const CpuSet& cpus) const { // their first CPUs
        CpuSet firsts;
        for (const unsigned cpu : cpus)
            firsts.insert(topology().core_of(cpu).first());
        return firsts;
    }
    [[nodiscard]] CpuSet near(const std::string& nic) const {
        return machine::near_cpus(of.machine, *of.machine.nic(nic));
    }
};

bool reads(const SeatRow& row, const std::string& nic) {
    return std::ranges::find(row.nics, nic) != row.nics.end();
}

void seats_are_inside_the_policys_cpus_and_the_cpuset(const Dealt& dealt) {
    for (const auto& lanes : dealt.policy().nics)
        for (const auto& row : lanes.rows)
            for (const auto& slot : row.slots) {
                EXPECT_TRUE(row.may.contains(slot.mask)) << row.name;
                EXPECT_TRUE(slot.mask.contains(slot.cpus)) << row.name;
            }
}

/// How many readers there are for each row.
std::map<std::tuple<unsigned, CpuSet, NicNames>, unsigned> counts_of(const Dealt& dealt,
                                                                     const NicLanes& lanes) {
    std::map<std::tuple<unsigned, CpuSet, NicNames>, unsigned> counts;
    for (const auto& [readers_of, count] :
         dealt.of.usage.empty() ? std::map<Readers, unsigned>{} : dealt.of.usage.at("p0")) {
        NicNames nics;
        for (const auto& nic : lanes.nics)
            if (readers_of.nics.empty() || std::ranges::find(readers_of.nics, nic) != readers_of.nics.end())
                nics.push_back(nic);
        const auto& allowed = dealt.policy().allowed;
        if (!nics.empty())
            counts[{readers_of.rule, readers_of.cpuset.empty() ? allowed : allowed & readers_of.cpuset,
                    nics}] += count;
    }
    return counts;
}

void each_reader_has_a_core_as_long_as_there_are_cores(const Dealt& dealt) {
    std::map<unsigned, int> readers; // that were dealt before; those who may use fewer CPUs come first
    std::map<CpuSet, std::size_t> everyone;
    for (const auto& lanes : dealt.policy().nics)
        for (const auto& [one, count] : counts_of(dealt, lanes))
            if (dealt.policy().reads(std::get<0>(one))) everyone[std::get<1>(one)] += count;
    for (const auto& lanes : dealt.policy().nics) {
        std::size_t narrower = 0;
        auto counts = counts_of(dealt, lanes);
        for (const auto& [one, count] : counts)
            if (dealt.policy().reads(std::get<0>(one)) && !std::get<1>(one).empty()) {
                EXPECT_TRUE(std::ranges::any_of(lanes.rows,
                                                [&](const SeatRow& row) {
                                                    return !row.is_open &&
                                                           std::tuple(row.rule, row.may, row.nics) == one;
                                                }))
                    << "readers in a cpuset have no seats in it: " << std::get<1>(one).to_list();
            }
        for (const auto& row : lanes.rows) {
            if (row.is_open) continue;
            const auto cores = dealt.cores(row.may);
            const std::size_t count = counts[{row.rule, row.may, row.nics}], all = everyone[row.may];
            const auto part = (cores.count() * count + all - 1) / std::max<std::size_t>(1, all);
            EXPECT_GE(row.slots.size(), all > cores.count() ? part : count);
            EXPECT_LE(narrower, row.may.count());
            narrower = row.may.count();
            CpuSet of_row;
            for (const auto& slot : row.slots)
                of_row |= dealt.cores(slot.cpus);
            for (const unsigned taken : of_row)
                for (const unsigned core : cores - of_row)
                    EXPECT_LE(readers[taken], readers[core])
                        << row.name << ": " << taken << " though " << core << " has fewer";
            for (const unsigned core : of_row)
                ++readers[core];
        }
    }
}

CpuSet cores_of_readers(const Dealt& dealt) {
    CpuSet taken;
    for (const auto& lanes : dealt.policy().nics)
        for (const auto& row : lanes.rows)
            for (const auto& slot : row.slots)
                if (!row.is_open) taken |= dealt.topology().core_of(slot.cpus.first());
    return taken;
}

void seats_are_nearest_first(const Dealt& dealt) {
    const CpuSet taken = cores_of_readers(dealt);
    for (const auto& lanes : dealt.policy().nics)
        for (const auto& row : lanes.rows) {
            if (row.is_open) continue;
            CpuSet near;
            for (const auto& nic : row.nics)
                near |= dealt.near(nic);
            const auto far = distances_to(dealt.topology(), near);
            for (const auto& slot : row.slots)
                for (const unsigned cpu : row.may - taken)
                    EXPECT_LE(far[slot.cpus.first()], far[cpu]) << row.name << ": CPU " << cpu << " is free";
        }
}

/// Seats of readers that queues of a NIC belong to.
std::vector<const Slot*> seats_for(const Dealt& dealt, const NicLanes& lanes, const std::string& nic) {
    std::vector<const Slot*> on_side, all;
    const auto far = distances_to(dealt.topology(), dealt.near(nic));
    for (const auto& row : lanes.rows)
        for (const auto& slot : row.slots) {
            if (row.is_open || !reads(row, nic)) continue;
            all.push_back(&slot);
            const bool is_nearer_another = std::ranges::any_of(row.nics, [&](const std::string& other) {
                return distances_to(dealt.topology(), dealt.near(other))[slot.cpus.first()] <
                       far[slot.cpus.first()];
            });
            if (!is_nearer_another) on_side.push_back(&slot);
        }
    std::set<CpuSet> sides;
    std::size_t queues = 0;
    for (std::size_t i = 0; i < lanes.nics.size(); ++i) {
        sides.insert(dealt.near(lanes.nics[i]));
        if (lanes.nics[i] == nic) queues = lanes.queues[i].size();
    }
    const auto fair = std::max<std::size_t>(1, std::min(queues, all.size() / sides.size()));
    return on_side.size() >= fair ? on_side : all;
}

void queues_go_to_readers_and_readers_differ_by_one_queue(const Dealt& dealt) {
    for (const auto& lanes : dealt.policy().nics)
        for (std::size_t i = 0; i < lanes.queues.size(); ++i) {
            const auto seats = seats_for(dealt, lanes, lanes.nics[i]);
            if (seats.empty()) continue;
            std::map<CpuSet, std::size_t> counts;
            for (const auto& queue : lanes.queues[i]) {
                EXPECT_TRUE(std::ranges::any_of(
                    seats, [&](const Slot* seat) { return seat->mask.contains(queue.cpu); }))
                    << lanes.nics[i] << ": CPU " << queue.cpu << " has no reader";
                ++counts[queue.seat];
            }
            std::map<CpuSet, std::size_t> shared; // two rows may have one core
            for (const auto* seat : seats)
                ++shared[seat->cpus];
            for (const auto& [seat, times] : shared) {
                EXPECT_LE(counts[seat], times * ((lanes.queues[i].size() + seats.size() - 1) / seats.size()));
                EXPECT_GE(counts[seat],
                          std::min(times, std::size_t{1}) * (lanes.queues[i].size() / seats.size()));
            }
        }
}

void queues_use_as_many_cores_as_their_readers_have(const Dealt& dealt) {
    for (const auto& lanes : dealt.policy().nics)
        for (std::size_t i = 0; i < lanes.queues.size(); ++i) {
            const auto seats = seats_for(dealt, lanes, lanes.nics[i]);
            CpuSet used, narrow;
            std::size_t widest = 0;
            for (const auto* seat : seats) {
                narrow |= dealt.cores(seat->cpus);
                widest = std::max(widest, dealt.cores(seat->mask).count());
            }
            for (const auto& queue : lanes.queues[i])
                used |= dealt.cores({queue.cpu});
            EXPECT_GE(used.count(), std::min(lanes.queues[i].size(), narrow.count())) << lanes.nics[i];
            if (seats.size() == 1) {
                EXPECT_EQ(used.count(), std::min(lanes.queues[i].size(), widest)) << lanes.nics[i];
            }
        }
}

void readers_without_a_queue_are_handed_packets_once_and_nobody_else_is(const Dealt& dealt) {
    if (dealt.of.is_irq) return;
    for (const auto& lanes : dealt.policy().nics) {
        std::map<const Slot*, const SeatRow*> quiet;
        for (const auto& row : lanes.rows)
            for (const auto& slot : row.slots) {
                bool is_fed = row.is_open;
                for (std::size_t i = 0; i < lanes.queues.size(); ++i)
                    for (const auto& queue : lanes.queues[i])
                        is_fed |= reads(row, lanes.nics[i]) && queue.seat.intersects(slot.cpus);
                if (!is_fed) quiet[&slot] = &row;
            }
        const auto sharers = [&](const Slot& slot) { // rows may have one core
            std::size_t count = 0;
            for (const auto& row : lanes.rows)
                for (const auto& other : row.slots)
                    count += !row.is_open && other.cpus.intersects(slot.cpus) ? 1 : 0;
            return count;
        };
        std::map<const Slot*, unsigned> handed;
        for (std::size_t i = 0; i < lanes.queues.size(); ++i)
            for (const auto& queue : lanes.queues[i]) {
                EXPECT_EQ(queue.handed_to.empty(), (queue.handed_to - queue.seat).empty());
                CpuSet known = queue.seat;
                for (const auto& [slot, row] : quiet) {
                    if (!reads(*row, lanes.nics[i]) || !queue.handed_to.intersects(slot->cpus)) continue;
                    known |= slot->cpus;
                    ++handed[slot];
                    const auto node = dealt.topology().node_cpus_of(slot->cpus.first());
                    if (node.contains(queue.cpu) || sharers(*slot) > 1) continue;
                    for (std::size_t other = 0; other < lanes.queues.size(); ++other)
                        for (const auto& near : lanes.queues[other])
                            EXPECT_FALSE(reads(*row, lanes.nics[other]) && node.contains(near.cpu))
                                << slot->cpus.to_list() << " is handed packets from another node";
                }
                EXPECT_TRUE(known.contains(queue.handed_to)) << "a core without a reader that lacks a queue";
            }
        for (const auto& [slot, row] : quiet) {
            EXPECT_GE(handed[slot], 1U) << slot->cpus.to_list();
            if (sharers(*slot) == 1) {
                EXPECT_LE(handed[slot], 1U) << slot->cpus.to_list();
            }
        }
    }
}

void each_seat_sends_by_a_queue_of_each_of_its_interfaces(const Dealt& dealt) {
    for (const auto& lanes : dealt.policy().nics)
        for (std::size_t i = 0; i < lanes.queues.size(); ++i) {
            CpuSet sending;
            for (const auto& queue : lanes.queues[i])
                sending |= queue.sent_from;
            for (const auto& row : lanes.rows)
                for (const auto& slot : row.slots)
                    if (!row.is_open && reads(row, lanes.nics[i])) {
                        EXPECT_TRUE(sending.intersects(slot.cpus)) << lanes.nics[i] << slot.cpus.to_list();
                    }
        }
}

void without_readers_queues_go_to_the_nearest_cores_one_a_core(const Dealt& dealt) {
    const CpuSet taken = cores_of_readers(dealt);
    for (const auto& lanes : dealt.policy().nics) {
        if (lanes.seats() > 0) continue;
        for (std::size_t i = 0; i < lanes.queues.size(); ++i) {
            CpuSet used;
            for (const auto& queue : lanes.queues[i])
                used |= dealt.cores({queue.cpu});
            CpuSet mine = dealt.policy().allowed; // without cores that are nearer to another interface
            for (const auto& other : dealt.policy().nics)
                for (const unsigned cpu : dealt.policy().allowed)
                    for (const auto& nic : other.nics)
                        if (&other != &lanes &&
                            distances_to(dealt.topology(), dealt.near(nic))[cpu] <
                                distances_to(dealt.topology(), dealt.near(lanes.nics[i]))[cpu])
                            mine -= CpuSet{cpu};
            const auto all = dealt.cores(mine.empty() ? dealt.policy().allowed : mine);
            EXPECT_EQ(used.count(), std::min(all.count(), lanes.queues[i].size()));
            if (lanes.nics.size() > 1) continue;
            const auto far = distances_to(dealt.topology(), dealt.near(lanes.nics[i]));
            for (const auto& queue : lanes.queues[i])
                for (const unsigned core : (mine.empty() ? dealt.policy().allowed : mine) - taken)
                    if (!used.contains(dealt.topology().core_of(core).first())) {
                        EXPECT_LE(far[queue.cpu], far[core]) << core << " is nearer and free";
                    }
        }
    }
}

void the_same_world_gives_the_same_plan_and_one_reader_more_moves_little(const Dealt& dealt) {
    const auto again = compile(dealt.set, dealt.of.machine, dealt.of.usage, &dealt.placements);
    ASSERT_EQ(again.queues.size(), dealt.placements.queues.size());
    for (std::size_t i = 0; i < again.queues.size(); ++i)
        EXPECT_TRUE(again.queues[i].is_same(dealt.placements.queues[i]))
            << to_string(again.queues[i].subject) << ": " << dealt.placements.queues[i].wanted.to_string()
            << " -> " << again.queues[i].wanted.to_string();
    if (dealt.of.usage.empty()) return;
    auto usage = dealt.of.usage;
    ++usage.begin()->second.begin()->second;
    const auto more = compile(dealt.set, dealt.of.machine, usage, &dealt.placements);
    for (std::size_t i = 0; i < more.policies[0].nics.size(); ++i) {
        const auto& now = more.policies[0].nics[i];
        const auto& before = dealt.policy().nics[i];
        std::set<CpuSet> sides; // with several, all of a NIC's queues may change sides
        for (const auto& nic : now.nics)
            sides.insert(dealt.near(nic));
        for (std::size_t nic = 0; nic < now.queues.size() && sides.size() == 1; ++nic) {
            std::size_t moved = 0;
            for (std::size_t place = 0; place < now.queues[nic].size(); ++place)
                moved += now.queues[nic][place].cpu != before.queues[nic][place].cpu ? 1 : 0;
            EXPECT_LE(moved, now.queues[nic].size() / std::max<std::size_t>(
                                                          1, seats_for(dealt, before, now.nics[nic]).size()) +
                                 2 * now.rows.size())
                << now.nics[nic];
        }
    }
}

/// Readers take their seats; the others are placed as their rules say.
void tasks_take_the_seats_one_each(const Dealt& dealt) {
    if (dealt.of.is_irq || dealt.of.machine.topology.online.count() > 128) return;
    Assignments assignments;
    const std::map<unsigned, std::string> names{{0, "work"}, {1, "log"}, {2, "bg"}, {3, "far"}, {4, "acc"}};
    int pid = 100;
    for (const auto& [readers, count] : dealt.of.usage.at("p0")) {
        const bool is_row = dealt.policy().reads(readers.rule);
        const CpuSet may =
            readers.cpuset.empty() ? dealt.policy().allowed : dealt.policy().allowed & readers.cpuset;
        std::map<CpuSet, std::size_t> there;
        for (unsigned i = 0; i < count; ++i, ++pid) {
            const auto task = test::thread(pid, names.at(readers.rule), dealt.topology().online);
            const ProcessView process{.id = task.id,
                                      .policy = 0,
                                      .nics = &readers.nics,
                                      .cpuset = readers.cpuset.empty() ? nullptr : &readers.cpuset};
            const auto target = place(dealt.placements, assignments, process, {task});
            if (!target) {
                EXPECT_TRUE(readers.rule == 1 || may.empty() || readers.rule == 3);
                continue;
            }
            EXPECT_TRUE(readers.cpuset.empty() || readers.cpuset.contains(target->mask));
            if (is_row) {
                EXPECT_TRUE(may.contains(target->mask));
                ++there[target->slot];
            }
        }
        std::size_t most = 0, least = count;
        for (const auto& [slot, tasks] : there)
            most = std::max(most, tasks), least = std::min(least, tasks);
        std::size_t all = 0;
        for (const auto& [others, number] : dealt.of.usage.at("p0"))
            all += number;
        if (is_row && readers.nics.size() == 1 && all <= dealt.cores(may).count()) {
            EXPECT_LE(most, 1U) << "stacked while there are cores: " << may.to_list();
        }
    }
}

TEST(LaneRule, EachSentenceHoldsOnTwoThousandMachines) {
    const std::vector<std::pair<const char*, void (*)(const Dealt&)>> sentences{
        {"seats are inside the policys cpus and the cpuset",
         seats_are_inside_the_policys_cpus_and_the_cpuset},
        {"each reader has a core as long as there are cores",
         each_reader_has_a_core_as_long_as_there_are_cores},
        {"seats are nearest first", seats_are_nearest_first},
        {"queues go to readers and readers differ by one queue",
         queues_go_to_readers_and_readers_differ_by_one_queue},
        {"queues use as many cores as their readers have", queues_use_as_many_cores_as_their_readers_have},
        {"readers without a queue are handed packets once and nobody else is",
         readers_without_a_queue_are_handed_packets_once_and_nobody_else_is},
        {"each seat sends by a queue of each of its interfaces",
         each_seat_sends_by_a_queue_of_each_of_its_interfaces},
        {"without readers queues go to the nearest cores one a core",
         without_readers_queues_go_to_the_nearest_cores_one_a_core},
        {"the same world gives the same plan and one reader more moves little",
         the_same_world_gives_the_same_plan_and_one_reader_more_moves_little},
        {"tasks take the seats one each", tasks_take_the_seats_one_each},
    };
    for (unsigned seed = 1; seed <= 2000; ++seed) {
        const Dealt dealt(seed);
        if (!dealt.policy().active) continue;
        for (const auto& [sentence, check] : sentences) {
            SCOPED_TRACE(std::string(sentence) + ", seed " + std::to_string(seed) + "\n" + dealt.of.text);
            check(dealt);
        }
        ASSERT_FALSE(HasFailure());
    }
}

} // namespace
} // namespace affinityd::planner
