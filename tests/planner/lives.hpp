// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machines.hpp"
#include "packing.hpp"
#include "planner/crowding.hpp"
#include "planner/plan.hpp"
#include "world.hpp"

#include <map>
#include <random>
#include <string>
#include <vector>

/// Worlds made by chance from a seed, and a daemon's life in them.
namespace affinityd::planner::test {

class Dice {
  public:
    explicit Dice(unsigned seed) : engine_(seed) {}
    unsigned upto(unsigned most) { return static_cast<unsigned>(engine_() % (most + 1ULL)); }
    unsigned within(unsigned least, unsigned most) { return least + upto(most - least); }
    bool once_in(unsigned times) { return upto(times - 1) == 0; }
    std::string any(std::initializer_list<const char*> of) {
        return *(of.begin() + upto(static_cast<unsigned>(of.size()) - 1));
    }
    template <class Values>
    void shuffle(Values& values) {
        for (std::size_t i = values.size(); i > 1; --i)
            std::swap(values[i - 1], values[upto(static_cast<unsigned>(i) - 1)]);
    }

  private:
    std::mt19937 engine_;
};

/// Between one and four nodes of one to three cache groups, 2 to 64 CPUs.
inline machine::Machine invented(Dice& dice) {
    const unsigned threads = dice.within(1, 2), nodes = dice.within(1, 4), groups = dice.within(1, 3);
    const unsigned least = nodes * groups * threads == 1 ? 2 : 1;
    const unsigned cores = dice.within(least, std::max(least, std::min(8U, 64 / (nodes * groups * threads))));
    const bool siblings_last = dice.once_in(2); // 0 and n/2 share a core, or 0 and 1
    const unsigned all_cores = nodes * groups * cores;
    machine::Machine machine;
    auto& topology = machine.topology;
    topology.possible = topology.present = topology.online = topology.housekeeping =
        CpuSet::range(0, all_cores * threads - 1);
    const auto siblings = [&](unsigned core) {
        CpuSet cpus;
        for (unsigned i = 0; i < threads; ++i)
            cpus.insert(siblings_last ? core + i * all_cores : core * threads + i);
        return cpus;
    };
    for (unsigned node = 0; node < nodes; ++node) {
        CpuSet of_node;
        for (unsigned group = 0; group < groups; ++group) {
            CpuSet of_group;
            for (unsigned core = 0; core < cores; ++core) {
                const unsigned number = (node * groups + group) * cores + core;
                of_group |= siblings(number);
                topology.cores.push_back(siblings(number));
                for (const unsigned cpu : siblings(number))
                    topology.cpus.push_back({cpu,
                                             static_cast<int>(node),
                                             {},
                                             {},
                                             static_cast<int>(number),
                                             node,
                                             {},
                                             siblings(number)});
            }
            topology.caches.push_back({3, topology::Cache::Type::unified, 1U << 20, of_group});
            of_node |= of_group;
        }
        topology.packages.push_back(of_node);
        std::vector<unsigned> distance(nodes, 21);
        distance[node] = 10;
        topology.nodes.push_back({node, std::move(of_node), 1U << 30, std::move(distance)});
    }
    std::ranges::sort(topology.cpus, {}, &topology::Cpu::id);
    return machine;
}

struct Process {
    std::size_t policy = 0;         ///< index of its text
    std::vector<std::string> comms; ///< of its threads
    std::vector<Weight> weights;    ///< what they use
};

/// A machine, and the events on it.
struct Recipe {
    machine::Machine machine;
    NicUsage usage;
    std::vector<std::string> texts; ///< of policies; text i is about app<i>
    std::vector<Process> processes;
    std::vector<int> events;        ///< n: process n is born; -n-1: it ends
    std::vector<Weight> interrupts; ///< what each of them uses, in turn; empty: not known
};

inline std::string cpus_text(Dice& dice, const CpuSet& online) {
    const auto cpus = online.to_vector();
    const unsigned last = static_cast<unsigned>(cpus.size()) - 1;
    CpuSet chosen;
    if (dice.once_in(2)) { // a row of neighbours
        const unsigned from = dice.upto(last);
        for (unsigned i = from; i <= dice.within(from, last); ++i)
            chosen.insert(cpus[i]);
    } else {
        for (const unsigned cpu : cpus)
            if (dice.once_in(2)) chosen.insert(cpu);
    }
    chosen.insert(cpus[dice.upto(last)]);
    return "\"" + chosen.to_list() + "\"";
}

inline std::string policy_text(Dice& dice, unsigned number, const machine::Machine& machine,
                               std::string nic) {
    const auto& online = machine.topology.online;
    std::string text = "match: {comm: app" + std::to_string(number) + "}\n";
    if (dice.once_in(2)) text += "cpus: " + cpus_text(dice, online) + "\n";
    if (!dice.once_in(4)) text += "spread: " + dice.any({"any", "cpu", "core", "llc", "node"}) + "\n";
    if (!dice.once_in(4)) text += "bind: " + dice.any({"cpu", "core", "llc", "node", "set"}) + "\n";
    if (dice.once_in(5)) text += "smt: avoid\n";
    if (dice.once_in(5)) text += "together: " + dice.any({"core", "llc", "node"}) + "\n";
    if (!nic.empty())
        text += "affinity: " + dice.any({"full", "full", "irq", "process"}) + "\nnics: [" + nic + "]\n";
    if (dice.once_in(4))
        text += "threads:\n  - {name: \"io-*\", cpus: " + cpus_text(dice, online) +
                ", spread: " + dice.any({"any", "cpu", "core"}) + ", bind: " + dice.any({"cpu", "core"}) +
                "}\n";
    return text;
}

inline Weight random_weight(Dice& dice) {
    const unsigned kind = dice.upto(9);
    if (kind < 4) return dice.upto(20) * (one_cpu / 1000);         // an idle helper
    if (kind < 7) return dice.within(100, 500) * (one_cpu / 1000); // medium
    return dice.within(700, 1000) * (one_cpu / 1000);              // busy
}

inline Process random_process(Dice& dice, std::size_t policies) {
    Process process{dice.upto(static_cast<unsigned>(policies) - 1), {}, {}};
    for (unsigned threads = dice.within(1, 6); process.comms.size() < threads;) {
        process.comms.push_back(process.comms.empty() ? "main" : dice.any({"worker", "worker", "io-1"}));
        process.weights.push_back(random_weight(dice));
    }
    return process;
}

inline void add_nics(Dice& dice, machine::Machine& machine, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
        const unsigned queues = dice.within(1, 4);
        add_nic(machine, "eth" + std::to_string(i), 0, queues, 400000 + i * 16);
        auto& nic = machine.nics.back();
        const auto cpus = machine.topology.online.to_vector();
        const unsigned near = cpus[dice.upto(static_cast<unsigned>(cpus.size()) - 1)];
        nic.local_cpus = machine.topology.node_cpus_of(near);
        nic.node = machine.topology.find(near)->node;
    }
    for (auto& irq : machine.irqs.irqs)
        irq.requested = machine.topology.online;
}

inline Recipe recipe(unsigned seed, machine::Machine machine) {
    Dice dice(seed * 2 + 1);
    Recipe recipe{std::move(machine), {}, {}, {}, {}, {}};
    const unsigned nics = dice.upto(3), policies = dice.within(1, 12);
    add_nics(dice, recipe.machine, nics);
    for (unsigned i = 0; i < policies; ++i) {
        const bool has_nic = i < nics; // no two policies want one interface
        recipe.texts.push_back(
            policy_text(dice, i, recipe.machine, has_nic ? "eth" + std::to_string(i) : ""));
    }
    if (dice.once_in(2))
        for (unsigned i = 0; i < 12; ++i)
            recipe.interrupts.push_back(dice.upto(400) * (one_cpu / 1000));
    std::vector<int> live;
    for (unsigned events = dice.within(10, 60), i = 0; i < events; ++i) {
        if (!live.empty() && dice.once_in(3)) {
            const auto which = live.begin() + dice.upto(static_cast<unsigned>(live.size()) - 1);
            recipe.events.push_back(-*which - 1);
            live.erase(which);
        } else {
            live.push_back(static_cast<int>(recipe.processes.size()));
            recipe.events.push_back(live.back());
            recipe.processes.push_back(random_process(dice, policies));
        }
    }
    return recipe;
}

/// A daemon under these policies, in this order of theirs.
class Life {
  public:
    Life(const Recipe& recipe, std::vector<std::size_t> order) : recipe_(recipe) {
        std::vector<std::string> texts;
        for (const auto text : order)
            texts.push_back(recipe.texts[text]);
        set_ = policies(texts);
        index_.resize(order.size());
        for (std::size_t i = 0; i < order.size(); ++i)
            for (std::size_t policy = 0; policy < set_.policies.size(); ++policy)
                if (set_.policies[policy].name == "p" + std::to_string(i)) index_[order[i]] = policy;
        placements_ = compile(set_, recipe.machine, recipe.usage);
        if (!recipe.interrupts.empty()) measure_interrupts();
        assignments_.use(placements_.load);
    }

    void event(int event) {
        if (event >= 0)
            born(event);
        else
            ends(-event - 1);
    }
    void born(int number) {
        auto& threads = live_[number];
        for (std::size_t i = 0; i < recipe_.processes[static_cast<std::size_t>(number)].comms.size(); ++i)
            threads.push_back({thread(number * 10 + 10 + static_cast<int>(i),
                                      recipe_.processes[static_cast<std::size_t>(number)].comms[i],
                                      recipe_.machine.topology.online),
                               {}});
        plan(number);
    }
    void ends(int number) {
        for (const auto& one : live_.at(number))
            assignments_.drop(one.thread.id);
        live_.erase(number);
    }
    /// A pass: all threads are planned, and what they use is known.
    void pass() {
        std::map<TaskId, std::map<DistributionId, Weight>> units;
        for (const auto& [number, threads] : live_) {
            plan(number);
            for (std::size_t i = 0; i < threads.size(); ++i)
                if (const auto& target = threads[i].target)
                    units[target->unit][target->distribution] +=
                        recipe_.processes[static_cast<std::size_t>(number)].weights[i];
        }
        for (const auto& [unit, weights] : units) {
            std::vector<unsigned> tables;
            for (const auto& [distribution, weight] : weights)
                if (const auto table = assignments_.number(distribution)) {
                    assignments_.weigh(*table, unit, weight);
                    tables.push_back(*table);
                }
            assignments_.drop_others(unit, tables);
        }
    }
    /// A pass, a look at what is crowded, and a pass; how many moved.
    std::size_t look() {
        pass();
        const auto moves = relief_.look(crowdings(placements_, assignments_));
        for (const auto& move : moves)
            assignments_.move(move.task, move.table, move.from, move.to);
        pass();
        return moves.size();
    }

    [[nodiscard]] double busiest() const {
        return static_cast<double>(assignments_.load().busiest()) / static_cast<double>(one_cpu);
    }

    /// The same as pieces of work, and where each of them is.
    [[nodiscard]] std::pair<Packing, std::vector<std::size_t>> packing() const {
        std::vector<double> fixed;
        for (const unsigned cpu : recipe_.machine.topology.online)
            if (placements_.load->core_of(cpu) == cpu) {
                fixed.resize(cpu + 1U);
                fixed[cpu] = static_cast<double>(placements_.load->on_core(cpu)) / one_cpu;
            }
        std::map<std::pair<TaskId, DistributionId>, std::size_t> numbers;
        std::map<std::pair<std::size_t, int>, std::size_t> families;
        std::vector<Piece> pieces;
        std::vector<std::size_t> now;
        for (const auto& [number, threads] : live_)
            for (std::size_t i = 0; i < threads.size(); ++i) {
                if (!threads[i].target) continue;
                const auto& target = *threads[i].target;
                const auto weight = recipe_.processes[static_cast<std::size_t>(number)].weights[i];
                const auto [at, is_new] =
                    numbers.try_emplace({target.unit, target.distribution}, pieces.size());
                if (is_new) {
                    pieces.push_back(piece_of(target, now.emplace_back()));
                    const bool is_in_group = target.distribution.kind == DistributionId::Kind::in_group;
                    const int family = is_in_group ? number : -static_cast<int>(pieces.size());
                    pieces.back().family =
                        families.try_emplace({target.policy, family}, families.size()).first->second;
                }
                pieces[at->second].weight += static_cast<double>(weight) / one_cpu;
            }
        return {Packing(std::move(fixed), std::move(pieces)), std::move(now)};
    }
    /// Masks of all threads.
    [[nodiscard]] std::string masks() const {
        std::string text;
        for (const auto& [number, threads] : live_)
            for (const auto& one : threads)
                text += one.thread.allowed.to_list() + " ";
        return text;
    }
    [[nodiscard]] std::vector<int> alive() const {
        std::vector<int> numbers;
        for (const auto& [number, threads] : live_)
            numbers.push_back(number);
        return numbers;
    }

  private:
    struct One {
        inventory::Thread thread;
        std::optional<Target> target;
    };
    void plan(int number) {
        auto& threads = live_.at(number);
        const auto policy = index_[recipe_.processes[static_cast<std::size_t>(number)].policy];
        for (unsigned i = 0; i < threads.size(); ++i) {
            auto plan =
                plan_thread({placements_, assignments_, undo_},
                            {.id = threads.front().thread.id, .policy = policy}, {threads[i].thread, i});
            threads[i].target = std::move(plan.target);
            if (threads[i].target) threads[i].thread.allowed = threads[i].target->mask;
        }
    }
    void measure_interrupts() {
        CpuLoad load(recipe_.machine.topology);
        std::size_t number = 0;
        for (const auto& target : placements_.queues)
            if (std::holds_alternative<machine::IrqMask>(target.subject))
                load.add(target.wanted.cpus(), recipe_.interrupts[number++ % recipe_.interrupts.size()]);
        placements_.load = std::make_shared<const CpuLoad>(std::move(load));
    }
    void add_spots(Piece& piece, const std::vector<Slot>& slots, std::size_t group) const {
        const auto& load = *placements_.load;
        for (const auto& slot : slots) {
            Spot spot{group, {}};
            std::map<unsigned, double> parts;
            for (const unsigned cpu : slot.cpus)
                parts[load.core_of(cpu)] += 1.0 / static_cast<double>(slot.cpus.count());
            // Tasks that may be anywhere do not count.
            if (slots.size() > 1 || !load.covers(slot.cpus)) spot.parts.assign(parts.begin(), parts.end());
            piece.spots.push_back(std::move(spot));
        }
    }
    Piece piece_of(const Target& target, std::size_t& now) const {
        Piece piece;
        const auto& resolved = placements_.policies[target.policy];
        const auto find = [&](const std::vector<Slot>& slots) {
            return static_cast<std::size_t>(
                std::ranges::find(slots, target.slot.first(),
                                  [](const Slot& slot) { return slot.cpus.first(); }) -
                slots.begin());
        };
        if (target.distribution.kind != DistributionId::Kind::in_group) {
            const auto& slots = *slots_of(placements_, target.distribution);
            add_spots(piece, slots, 0);
            now = find(slots);
            return piece;
        }
        for (std::size_t i = 0; i < resolved.together.size(); ++i) {
            const auto& group = resolved.together[i];
            const auto& slots = group.distributions[target.distribution.rule];
            if (group.cpus.contains(target.slot)) now = piece.spots.size() + find(slots);
            add_spots(piece, slots, i);
        }
        return piece;
    }

    const Recipe& recipe_;
    policy::PolicySet set_;
    std::vector<std::size_t> index_; ///< of each text's policy
    Placements placements_;
    Assignments assignments_;
    Relief relief_;
    NoUndo undo_;
    std::map<int, std::vector<One>> live_;
};

} // namespace affinityd::planner::test
