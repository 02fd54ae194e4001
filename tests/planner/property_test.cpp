// SPDX-License-Identifier: Apache-2.0
// Rules that every plan keeps, tried on random worlds (fixed seeds).
#include "world.hpp"

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

class RandomPolicies {
  public:
    explicit RandomPolicies(unsigned seed) : engine_(seed) {}
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

std::string policy_text(RandomPolicies& dice, unsigned number) {
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

struct RandomWorld {
    policy::PolicySet set;
    machine::Machine machine;
    Placements placements;
    std::vector<Task> tasks;
    Assignments assignments;
    test::Book book;

    explicit RandomWorld(unsigned seed) {
        RandomPolicies dice(seed);
        std::vector<std::string> texts;
        for (unsigned i = 0; i <= dice.upto(3); ++i)
            texts.push_back(policy_text(dice, i));
        set = test::policies(texts);
        machine = test::plain(dice.upto(1) == 1 ? CpuSet{3} : CpuSet{});
        test::add_nic(machine, "eth0", 1, 2, 40);
        placements = compile(set, machine, {});
        for (int pid = 100; pid < 130; ++pid)
            for (unsigned i = 0; i <= dice.upto(4); ++i)
                add_task(dice, pid, i);
    }

    void add_task(RandomPolicies& dice, int pid, unsigned index) {
        static constexpr std::array names{"main", "io-1", "free", "worker"};
        Task task{{pid, 7}, dice.upto(static_cast<unsigned>(set.policies.size()) - 1), index, {}, {}};
        // A process has one policy.
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
        const ProcessView process{.id = task.process,
                                  .policy = wanted ? std::optional(task.policy) : std::nullopt,
                                  .cpuset = task.cpuset.empty() ? nullptr : &task.cpuset};
        return plan_thread({placements, assignments, book}, process, {task.thread, task.index});
    }

    /// Plans all and does it as the kernel would; the number of changes.
    std::size_t pass(const std::function<bool(const Task&)>& wanted) {
        std::size_t changes = 0;
        for (auto& task : tasks) {
            const auto planned = plan(task, wanted(task));
            if (planned.forget) book.forget(task.thread.id);
            if (!planned.action) continue;
            ++changes;
            apply(task, *planned.action);
        }
        return changes;
    }

    void apply(Task& task, const Action& action) {
        const auto& to = action.to.cpus();
        EXPECT_FALSE(to.empty());
        if (!action.restore) {
            EXPECT_TRUE(machine.topology.online.contains(to)) << to.to_list();
            EXPECT_TRUE(task.cpuset.empty() || task.cpuset.contains(to))
                << to.to_list() << " of " << task.cpuset.to_list();
        }
        book.apply(action, to);
        task.thread.allowed = to;
    }

    [[nodiscard]] std::vector<std::string> masks() const {
        std::vector<std::string> all;
        for (const auto& task : tasks)
            all.push_back(task.thread.allowed.to_list());
        return all;
    }
};

constexpr unsigned worlds = 400;
const auto all_wanted = [](const Task&) { return true; };

TEST(Properties, TheSameInputGivesTheSamePlan) {
    for (unsigned seed = 0; seed < worlds; ++seed) {
        RandomWorld one(seed);
        RandomWorld other(seed);
        one.pass(all_wanted);
        other.pass(all_wanted);
        ASSERT_EQ(one.masks(), other.masks()) << "seed " << seed;
    }
}

TEST(Properties, ASecondPlanAfterTheFirstIsEmpty) {
    std::size_t changes = 0;
    for (unsigned seed = 0; seed < worlds; ++seed) {
        RandomWorld world(seed);
        changes += world.pass(all_wanted);
        ASSERT_EQ(world.pass(all_wanted), 0U) << "seed " << seed;
    }
    EXPECT_GT(changes, worlds) << "these worlds are too dull to prove anything";
}

TEST(Properties, APolicyTakenAwayAndGivenBackEndsWhereItWas) {
    for (unsigned seed = 0; seed < worlds; ++seed) {
        RandomWorld world(seed);
        const auto before = world.masks();
        world.pass(all_wanted);
        const auto placed = world.masks();
        world.pass([](const Task&) { return false; });
        ASSERT_EQ(world.masks(), before) << "seed " << seed;
        for (const auto& policy : world.set.policies)
            world.assignments.drop_policy(policy.name);
        world.pass(all_wanted);
        ASSERT_EQ(world.masks(), placed) << "seed " << seed;
    }
}

TEST(Properties, MasksThatAnotherProgramSetStayWhenThePoliciesGo) {
    std::size_t moved = 0;
    for (unsigned seed = 0; seed < worlds; ++seed) {
        RandomWorld world(seed);
        auto expected = world.masks();
        world.pass(all_wanted);
        RandomPolicies dice(seed + worlds);
        for (std::size_t i = 0; i < world.tasks.size(); ++i) {
            auto& task = world.tasks[i];
            if (dice.upto(2) > 0) continue;
            const auto& online = world.machine.topology.online;
            CpuSet mask = dice.cpus(task.cpuset.empty() ? online : task.cpuset);
            const auto record = world.book.find(TaskMask{task.thread.id, 0, {}});
            if (record && is_still_ours(*record, mask, online, task.cpuset.empty() ? nullptr : &task.cpuset))
                continue; // the daemon cannot tell whose it is
            expected[i] = mask.to_list();
            task.thread.allowed = std::move(mask);
            ++moved;
        }
        world.pass([](const Task&) { return false; });
        ASSERT_EQ(world.masks(), expected) << "seed " << seed;
        EXPECT_TRUE(world.book.records.empty()) << "seed " << seed;
    }
    EXPECT_GT(moved, worlds) << "these worlds are too dull to prove anything";
}

TEST(Properties, NoSlotHasMoreThanOneTaskAboveTheEmptiest) {
    for (unsigned seed = 0; seed < worlds; ++seed) {
        RandomPolicies dice(seed);
        const auto set = test::policies(
            {"match: {comm: a}\nbind: " + dice.any(std::array{"cpu", "core", "llc"}) + "\nspread: cpu\n"});
        const auto machine = test::plain();
        const auto placements = compile(set, machine, {});
        Assignments assignments;
        const test::NoUndo undo;
        const Planning planning{placements, assignments, undo};
        std::map<std::string, unsigned> load;
        for (int tid = 1; tid <= static_cast<int>(dice.upto(40)) + 1; ++tid) {
            const auto thread = test::thread(tid, "a");
            const auto plan = plan_thread(planning, {.id = {1, 1}, .policy = 0}, {thread});
            if (plan.target) ++load[plan.target->slot.to_list()];
        }
        const auto by_load = [](const auto& a, const auto& b) { return a.second < b.second; };
        const auto [least, most] = std::minmax_element(load.begin(), load.end(), by_load);
        EXPECT_LE(most->second - least->second, 1U) << "seed " << seed;
    }
}

} // namespace
} // namespace affinityd::planner
