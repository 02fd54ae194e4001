// SPDX-License-Identifier: Apache-2.0
// Planning at size: 1,000 policies, 2,048 CPUs, 1,000 queues, and 1,000 to 100,000 tasks. Prints nanoseconds
// and bytes per task, and the ratio of the largest to the smallest run, which is what has to stay flat. Also
// prints what it takes to match a task that no policy wants, and to place threads that belong together.
#include "../support/plain_facts.hpp"
#include "machines.hpp"
#include "planner/plan.hpp"
#include "world.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>

#include <malloc.h>

namespace affinityd::planner {
namespace {

using std::chrono::steady_clock;

/// 16 packages of 64 cores with two threads each, two cache groups and one node per package.
topology::Topology large() {
    topology::Topology topology;
    topology.possible = topology.present = topology.online = topology.housekeeping = CpuSet::range(0, 2047);
    for (unsigned node = 0; node < 16; ++node) {
        const CpuSet cpus = CpuSet::range(node * 128, node * 128 + 127);
        topology.packages.push_back(cpus);
        topology.nodes.push_back({node, cpus, 1U << 30, {}});
        for (unsigned half = 0; half < 2; ++half)
            topology.caches.push_back({3, topology::Cache::Type::unified, 1U << 20,
                                       CpuSet::range(node * 128 + half * 64, node * 128 + half * 64 + 63)});
        for (unsigned core = 0; core < 64; ++core) {
            const unsigned first = node * 128 + core * 2;
            const CpuSet smt = CpuSet::range(first, first + 1);
            topology.cores.push_back(smt);
            for (const unsigned cpu : smt)
                topology.cpus.push_back(
                    {cpu, static_cast<int>(node), {}, {}, static_cast<int>(core), node, {}, smt});
        }
    }
    return topology;
}

std::vector<std::string> thousand_policies() {
    std::vector<std::string> texts;
    for (unsigned i = 0; i < 1000; ++i)
        texts.push_back("match: {comm: app" + std::to_string(i) + "}\ncpus: node:" + std::to_string(i % 16) +
                        "\nspread: core\nbind: llc\n");
    return texts;
}

double nanoseconds_per(std::size_t tasks, const std::function<void()>& work) {
    double best = 1e18; // of three: the machine does other work too
    for (int round = 0; round < 3; ++round) {
        const auto begin = steady_clock::now();
        work();
        best = std::min(best, std::chrono::duration<double, std::nano>(steady_clock::now() - begin).count());
    }
    return best / static_cast<double>(tasks);
}

struct Figures {
    double nanoseconds = 0;
    double bytes = 0;
};

Figures plan_tasks(const policy::PolicySet& set, const Placements& placements, std::size_t tasks) {
    const Matcher matcher(set);
    const test::NoLineage lineage;
    std::vector<inventory::PlainFacts> processes(tasks);
    std::vector<inventory::Thread> threads(tasks);
    for (std::size_t i = 0; i < tasks; ++i) {
        const int tid = static_cast<int>(i) + 1;
        processes[i].task = {tid, 1};
        processes[i].comm_text = "app" + std::to_string(i % 1000);
        threads[i] = {{tid, 1}, processes[i].comm_text, 0, CpuSet::range(0, 2047)};
    }
    Figures figures;
    const test::NoUndo undo;
    figures.nanoseconds = nanoseconds_per(tasks, [&] {
        const auto before = ::mallinfo2().uordblks;
        Assignments assignments;
        const Planning planning{placements, assignments, undo};
        for (std::size_t i = 0; i < tasks; ++i) {
            const auto policy = matcher.match(processes[i], lineage);
            const auto plan =
                plan_thread(planning, {.id = processes[i].task, .policy = policy}, {threads[i]});
            if (!plan.action) std::abort();
        }
        figures.bytes = static_cast<double>(::mallinfo2().uordblks - before) / static_cast<double>(tasks);
    });
    return figures;
}

double match_unwanted(const policy::PolicySet& set) {
    const Matcher matcher(set);
    const test::NoLineage lineage;
    inventory::PlainFacts process;
    process.task = {1, 1};
    process.comm_text = "no-policys-own";
    constexpr std::size_t times = 200000;
    return nanoseconds_per(times, [&] {
        for (std::size_t i = 0; i < times; ++i)
            if (matcher.match(process, lineage)) std::abort();
    });
}

int run() {
    const auto set = test::policies(thousand_policies());
    machine::Machine machine{large(), {}, {}};
    for (unsigned nic = 0; nic < 16; ++nic)
        test::add_nic(machine, "eth" + std::to_string(nic), nic, 63, 100 + nic * 64);
    const auto begin = steady_clock::now();
    const auto placements = compile(set, machine, {});
    const double compiled = std::chrono::duration<double, std::milli>(steady_clock::now() - begin).count();
    std::printf("placements of %zu policies on %zu CPUs with %zu interrupts: %.0f ms\n", set.policies.size(),
                machine.topology.online.count(), machine.irqs.irqs.size(), compiled);
    double first = 0;
    double last = 0;
    for (const std::size_t tasks : {1000U, 10000U, 100000U}) {
        const auto figures = plan_tasks(set, placements, tasks);
        std::printf("%6zu tasks: %.0f ns and %.0f bytes per task\n", tasks, figures.nanoseconds,
                    figures.bytes);
        if (first == 0) first = figures.nanoseconds;
        last = figures.nanoseconds;
    }
    std::printf("100,000 against 1,000 tasks: %.2f times the time per task (aim: at most 1.5)\n",
                last / first);
    std::printf("a task that no rule wants: %.0f ns to match (aim: below 1000)\n", match_unwanted(set));
    return 0;
}

} // namespace
} // namespace affinityd::planner

int main() { return affinityd::planner::run(); }
