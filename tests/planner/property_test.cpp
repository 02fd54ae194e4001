// SPDX-License-Identifier: Apache-2.0
// What holds for every plan, tried on worlds made at random (fixed seeds).
#include "machines.hpp"
#include "planner/plan.hpp"

#include <algorithm>
#include <array>
#include <random>

namespace affinityd::planner {
namespace {

using inventory::Thread;

struct Task {
    TaskId process;
    std::size_t policy = 0;
    unsigned index = 0;
    Thread thread;
    CpuSet cpuset;
};

struct Book final : Memory {
    std::map<TaskId, Held> tasks;
    [[nodiscard]] const Held* find(const Subject& subject) const override {
        const auto* task = std::get_if<TaskMask>(&subject);
        const auto found = task == nullptr ? tasks.end() : tasks.find(task->task);
        return found == tasks.end() ? nullptr : &found->second;
    }
};

class Dice {
  public:
    explicit Dice(unsigned seed) : engine_(seed) {}
    unsigned upto(unsigned most) { return std::uniform_int_distribution<unsigned>(0, most)(engine_); }
    template <std::size_t N>
    std::string any(const std::array<const char*, N>& of) {
        return of[upto(N - 1)];
    }
    CpuSet cpus(const CpuSet& among) {
        CpuSet result;
        for (const unsigned cpu : among)
            if (upto(1) == 1) result.insert(cpu);
        return result.empty() ? among : result;
    }

  private:
    std::mt19937 engine_;
};

std::string policy_text(Dice& dice, unsigned number) {
    std::string text = "match: {comm: app" + std::to_string(number) + "}\n";
    if (dice.upto(2) > 0)
        text +=
            "cpus: \"" + dice.any(std::array{"0-7", "0-3", "4-7", "2,5", "1,3,6-7", "all & !smt"}) + "\"\n";
    text += "spread: " + dice.any(std::array{"any", "cpu", "core", "llc", "node"}) + "\n";
    text += "bind: " + dice.any(std::array{"cpu", "core", "llc", "node", "set"}) + "\n";
    if (dice.upto(1) == 1) text += "smt: avoid\n";
    if (dice.upto(2) == 0) text += "together: " + dice.any(std::array{"core", "llc", "node"}) + "\n";
    if (dice.upto(2) == 0) text += "affinity: full\nnics: [eth0]\n";
    if (dice.upto(2) == 0)
        text += "threads:\n  - {name: \"io-*\", cpus: \"0-5\", bind: cpu}\n  - {name: free, leave: true}\n";
    return text;
}

struct World {
    policy::PolicySet set;
    Machine machine;
    Placements placements;
    std::vector<Task> tasks;
    Assignments seats;
    Book book;

    explicit World(unsigned seed) {
        Dice dice(seed);
        std::vector<std::string> texts;
        for (unsigned i = 0; i <= dice.upto(3); ++i)
            texts.push_back(policy_text(dice, i));
        set = test::policies(texts);
        machine = {test::two_sockets(dice.upto(1) == 1 ? CpuSet{3} : CpuSet{}), {}, {}};
        test::add_nic(machine, "eth0", 1, 2, 40);
        placements = compile(set, machine, {});
        for (int pid = 100; pid < 130; ++pid)
            for (unsigned i = 0; i <= dice.upto(4); ++i)
                add_task(dice, pid, i);
    }

    void add_task(Dice& dice, int pid, unsigned index) {
        static constexpr std::array names{"main", "io-1", "free", "worker"};
        Task task{{pid, 7}, dice.upto(static_cast<unsigned>(set.policies.size()) - 1), index, {}, {}};
        // One process has one policy.
        if (index > 0) task.policy = tasks.back().policy;
        task.cpuset = index > 0           ? tasks.back().cpuset
                      : dice.upto(2) == 0 ? dice.cpus(machine.topology.online)
                                          : CpuSet{};
        CpuSet allowed = dice.upto(1) == 1 ? machine.topology.online : dice.cpus(machine.topology.online);
        if (!task.cpuset.empty())
            allowed = allowed.intersects(task.cpuset) ? allowed & task.cpuset : task.cpuset;
        task.thread = {{pid * 100 + static_cast<int>(index), 7}, dice.any(names), 0, std::move(allowed)};
        tasks.push_back(std::move(task));
    }

    ThreadPlan plan(const Task& task, bool wanted = true) {
        const Unit unit{task.process, &task.thread, task.index, nullptr,
                        task.cpuset.empty() ? nullptr : &task.cpuset};
        return plan_thread(placements, seats, wanted ? std::optional(task.policy) : std::nullopt, unit, book);
    }

    /// Plans all and does it as the kernel would; the number of changes.
    std::size_t pass(const std::function<bool(const Task&)>& wanted) {
        std::size_t changes = 0;
        for (auto& task : tasks) {
            const auto planned = plan(task, wanted(task));
            if (!planned.action) continue;
            ++changes;
            apply(task, *planned.action);
        }
        return changes;
    }

    void apply(Task& task, const Action& action) {
        EXPECT_FALSE(action.to.empty());
        if (action.restore) {
            book.tasks.erase(task.thread.id);
        } else {
            EXPECT_TRUE(machine.topology.online.contains(action.to)) << action.to.to_list();
            EXPECT_TRUE(task.cpuset.empty() || task.cpuset.contains(action.to))
                << action.to.to_list() << " of " << task.cpuset.to_list();
            auto& held =
                book.tasks.try_emplace(task.thread.id, Held{task.thread.allowed, {}, {}, {}}).first->second;
            held.asked = held.granted = action.to;
            held.policy = action.policy;
        }
        task.thread.allowed = action.to;
    }

    [[nodiscard]] std::vector<std::string> masks() const {
        std::vector<std::string> all;
        for (const auto& task : tasks)
            all.push_back(task.thread.allowed.to_list());
        return all;
    }
};

constexpr unsigned worlds = 400;
const auto everyone = [](const Task&) { return true; };

TEST(Properties, TheSameInputGivesTheSamePlan) {
    for (unsigned seed = 0; seed < worlds; ++seed) {
        World one(seed);
        World other(seed);
        one.pass(everyone);
        other.pass(everyone);
        ASSERT_EQ(one.masks(), other.masks()) << "seed " << seed;
    }
}

TEST(Properties, ASecondPlanAfterTheFirstIsEmpty) {
    std::size_t changes = 0;
    for (unsigned seed = 0; seed < worlds; ++seed) {
        World world(seed);
        changes += world.pass(everyone);
        ASSERT_EQ(world.pass(everyone), 0U) << "seed " << seed;
    }
    EXPECT_GT(changes, worlds) << "these worlds are too dull to prove anything";
}

TEST(Properties, APolicyTakenAwayAndGivenBackEndsWhereItWas) {
    for (unsigned seed = 0; seed < worlds; ++seed) {
        World world(seed);
        const auto before = world.masks();
        world.pass(everyone);
        const auto placed = world.masks();
        world.pass([](const Task&) { return false; });
        ASSERT_EQ(world.masks(), before) << "seed " << seed;
        for (const auto& policy : world.set.policies)
            world.seats.forget_policy(policy.name);
        world.pass(everyone);
        ASSERT_EQ(world.masks(), placed) << "seed " << seed;
    }
}

TEST(Properties, NoUnitSitsMoreThanOneSeatAboveTheEmptiest) {
    for (unsigned seed = 0; seed < worlds; ++seed) {
        Dice dice(seed);
        const auto set = test::policies(
            {"match: {comm: a}\nbind: " + dice.any(std::array{"cpu", "core", "llc"}) + "\nspread: cpu\n"});
        const Machine machine{test::two_sockets(), {}, {}};
        const auto placements = compile(set, machine, {});
        Assignments seats;
        const Book book;
        std::map<std::string, unsigned> load;
        for (int tid = 1; tid <= static_cast<int>(dice.upto(40)) + 1; ++tid) {
            const auto thread = test::thread(tid, "a");
            const auto plan = plan_thread(placements, seats, 0, {{1, 1}, &thread, 0, nullptr}, book);
            if (plan.target) ++load[plan.target->home.to_list()];
        }
        const auto by_load = [](const auto& a, const auto& b) { return a.second < b.second; };
        const auto [least, most] = std::minmax_element(load.begin(), load.end(), by_load);
        EXPECT_LE(most->second - least->second, 1U) << "seed " << seed;
    }
}

} // namespace
} // namespace affinityd::planner
