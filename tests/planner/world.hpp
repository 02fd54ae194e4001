// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machines.hpp"
#include "planner/plan.hpp"

#include <algorithm>
#include <unordered_map>

namespace affinityd::planner::test {

using machine::FlowCount;
using machine::Setting;

/// Remembers what was applied, as the journal does.
struct Book final : UndoLookup {
    std::unordered_map<Subject, UndoRecord> records;

    [[nodiscard]] UndoPointer find(const Subject& subject) const override {
        const auto found = records.find(subject);
        return found == records.end() ? nullptr : std::make_shared<UndoRecord>(found->second);
    }
    void apply(const Action& action, const Setting& granted) {
        const auto [at, is_new] = records.try_emplace(action.subject);
        if (is_new) at->second.original = action.from;
        at->second.asked = action.to;
        at->second.granted = granted;
        at->second.policy = action.policy;
        if (action.restore) records.erase(at);
    }
    void forget(const TaskId& task) { records.erase(Subject(TaskMask{task, 0, {}})); }
};

/// Has no record of any subject.
struct NoUndo final : UndoLookup {
    [[nodiscard]] UndoPointer find(const Subject&) const override { return nullptr; }
};

/// Where readers sit, or where queues go while none is known.
inline std::vector<CpuSet> seats(const NicLanes& lanes) { return lanes.cores(); }

/// CPUs of the interrupts of the first interface's queues, in their order.
inline std::vector<unsigned> interrupts(const NicLanes& lanes) {
    std::vector<unsigned> cpus;
    for (const auto& queue : lanes.queues.front())
        cpus.push_back(queue.cpu);
    return cpus;
}

/// The next plan of the same policies.
inline Placements recompile(const policy::PolicySet& set, const Machine& machine, const NicUsage& usage,
                            const Placements& before) {
    return compile(set, machine, usage, &before);
}

/// A machine under one set of policies, with what the daemon would remember of the tasks on it.
struct World {
    policy::PolicySet set;
    Machine machine;
    Placements placements;
    Assignments assignments;
    Book book;

    World(const std::vector<std::string>& texts, Machine hardware, const NicUsage& usage = {})
        : set(policies(texts)), machine(std::move(hardware)), placements(compile(set, machine, usage)) {}

    /// Other policies on the same machine; what the daemon remembers stays.
    void reload(const std::vector<std::string>& texts, const NicUsage& usage = {}) {
        set = policies(texts);
        placements = compile(set, machine, usage);
    }

    [[nodiscard]] Planning planning(const BackoffLookup* backoff = nullptr) {
        return {placements, assignments, book, backoff};
    }
    ThreadPlan plan(const inventory::Thread& task, std::optional<std::size_t> policy = 0,
                    const std::vector<std::string>* nics = nullptr) {
        return plan_thread(planning(), {.id = task.id, .policy = policy, .nics = nics}, {task});
    }
    /// Carries out a plan of a task as the daemon would.
    void apply(inventory::Thread& task, const ThreadPlan& plan) {
        if (plan.forget) book.forget(task.id);
        if (!plan.action) return;
        book.apply(*plan.action, plan.action->to);
        task.allowed = plan.action->to.cpus();
    }
    /// Plans, carries it out, and says where the task is then.
    std::string settle(inventory::Thread& task, std::optional<std::size_t> policy = 0,
                       const std::vector<std::string>* nics = nullptr) {
        apply(task, plan(task, policy, nics));
        return task.allowed.to_list();
    }

    /// The present setting of a queue's subject on the machine.
    [[nodiscard]] Setting present(const Subject& subject) const {
        if (const auto* irq = std::get_if<IrqMask>(&subject))
            return machine.irqs.find(irq->irq)->requested.value();
        if (const auto* map = std::get_if<SteeringMask>(&subject))
            return queue(map->nic, map->direction, map->queue).steering.value();
        const auto& table = std::get<FlowTable>(subject);
        if (table.is_machine()) return FlowCount{machine.flow_entries.value()};
        return FlowCount{queue(table.nic, netdev::Direction::rx, table.queue).flow_count.value()};
    }
    /// The changes that all queues need.
    std::vector<Action> plan_queues(const BackoffLookup* backoff = nullptr) {
        std::vector<Action> actions;
        for (const auto& target : placements.queues)
            if (auto action = plan_queue(planning(backoff), target, present(target.subject)))
                actions.push_back(std::move(*action));
        return actions;
    }

  private:
    [[nodiscard]] const netdev::Queue& queue(const std::string& nic, netdev::Direction direction,
                                             unsigned index) const {
        return *std::ranges::find_if(machine.nic(nic)->queues, [&](const netdev::Queue& queue) {
            return queue.direction == direction && queue.index == index;
        });
    }
};

} // namespace affinityd::planner::test
