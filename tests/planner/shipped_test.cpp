// SPDX-License-Identifier: Apache-2.0
// Every file of policies/, whatever it is called, is read and planned: on a small machine built here and on
// the recorded ones. The plan must hold the promises in the comments of the files that are known here.
#include "../support/plain_facts.hpp"
#include "machine/machine.hpp"
#include "planner/check.hpp"
#include "policy/set_check.hpp"
#include "recorded.hpp"
#include "world.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace affinityd::planner {
namespace {

namespace fs = std::filesystem;
using machine::Machine;

std::vector<policy::Document> shipped() {
    std::vector<policy::Document> documents;
    for (const auto& entry : fs::directory_iterator(test::setting("AFFINITYD_SHIPPED_POLICIES", ""))) {
        if (entry.path().extension() != ".yaml") continue;
        std::ostringstream text;
        text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
        documents.push_back({entry.path().filename().string(), text.str()});
    }
    std::ranges::sort(documents, {}, &policy::Document::path);
    return documents;
}

std::string said(const std::vector<policy::Diagnostic>& diagnostics) {
    std::string text;
    for (const auto& diagnostic : diagnostics)
        text += policy::to_string(diagnostic, true) + "\n";
    return text;
}

/// A process with its threads, as a test has it.
struct Fake {
    inventory::PlainFacts facts;
    std::vector<inventory::Thread> threads;
};

Fake fake(int pid, const std::string& comm, const std::string& exe, const std::string& unit,
          const std::vector<std::string>& others, const CpuSet& online) {
    Fake process;
    process.facts.task = {pid, static_cast<std::uint64_t>(pid) * 10};
    process.facts.ppid = 1;
    process.facts.comm_text = comm;
    process.facts.exe_text = exe;
    process.facts.cmdline_text = exe;
    process.facts.cgroup_text = "/system.slice/" + unit;
    process.threads.push_back(test::thread(pid, comm, online));
    for (std::size_t i = 0; i < others.size(); ++i)
        process.threads.push_back(test::thread(pid + 1 + static_cast<int>(i), others[i], online));
    return process;
}

const std::vector<std::string> redis_threads{"bio_close_file", "bio_aof", "bio_lazy_free", "jemalloc_bg_thd"};

/// Threads of the names, with a number in place of "#" for each of the first kind.
std::vector<std::string> numbered(const std::string& name, unsigned count, std::vector<std::string> others) {
    for (unsigned i = count; i > 0; --i) {
        auto one = name;
        if (const auto at = one.find('#'); at != std::string::npos) one.replace(at, 1, std::to_string(i - 1));
        others.insert(others.begin(), one);
    }
    return others;
}

/// The tasks of a server that has all six: `workers` of each kind.
std::vector<Fake> servers(unsigned workers, const CpuSet& online) {
    std::vector<Fake> all;
    for (unsigned i = 0; i <= workers; ++i) // the master is the first
        all.push_back(
            fake(100 + static_cast<int>(i), "nginx", "/usr/sbin/nginx", "nginx.service", {}, online));
    all.push_back(
        fake(300, "redis-server", "/usr/bin/redis-check-rdb", "redis-server.service", redis_threads, online));
    for (unsigned i = 0; i <= workers; ++i)
        all.push_back(fake(400 + static_cast<int>(i), "postgres", "/usr/lib/postgresql/15/bin/postgres",
                           "postgresql@15-main.service", {}, online));
    all.push_back(fake(600, "haproxy", "/usr/sbin/haproxy", "haproxy.service",
                       std::vector<std::string>(workers - 1, "haproxy"), online));
    all.push_back(fake(700, "memcached", "/usr/bin/memcached", "memcached.service",
                       numbered("mc-worker", workers, {"mc-log", "mc-lrumaint", "mc-slabmaint"}), online));
    all.push_back(fake(800, "[TS_MAIN]", "/usr/bin/traffic_server", "trafficserver.service",
                       numbered("[ET_NET #]", workers, {"[ET_AIO 0:21]", "[LOG_FLUSH]"}), online));
    return all;
}

/// A process that the conditions want, for files whose program is not known here: globs become their shortest
/// text.
void satisfy(const policy::Selector& selector, inventory::PlainFacts& facts) {
    using Field = policy::Condition::Field;
    if (selector.op == policy::Selector::Op::none) return;
    for (const auto& child : selector.children) {
        satisfy(child, facts);
        if (selector.op == policy::Selector::Op::any) break;
    }
    if (selector.op != policy::Selector::Op::test) return;
    const auto& condition = selector.condition;
    std::string text = condition.patterns.empty() ? "" : condition.patterns.front().text();
    std::erase(text, '*');
    switch (condition.field) {
    case Field::comm:
        facts.comm_text = text;
        break;
    case Field::exe:
        facts.exe_text = text;
        break;
    case Field::cmdline:
        facts.cmdline_text = text;
        break;
    case Field::unit:
        facts.cgroup_text = "/system.slice/" + text;
        break;
    case Field::cgroup:
        facts.cgroup_text = text;
        break;
    case Field::user:
        facts.user_text = text;
        break;
    case Field::group:
        facts.group_text = text;
        break;
    case Field::listen:
        facts.ports = {condition.ports.front().first};
        break;
    case Field::kthread:
        facts.kernel = condition.flag;
        break;
    default:
        ADD_FAILURE() << "a shipped policy with a condition that this test cannot imitate";
    }
}

/// A NIC of `queues` queues near the first node's CPUs, with its interrupts, beside what the machine has.
void add_nic(Machine& machine, unsigned queues) {
    const unsigned first = machine.topology.online.first();
    const unsigned number = 900000;
    test::add_nic(machine, "test0", 0, queues, number);
    auto& nic = machine.nics.back();
    nic.local_cpus = machine.topology.node_cpus_of(first);
    nic.node = machine.topology.find(first)->node;
    for (unsigned i = 0; i < queues; ++i)
        machine.irqs.irqs[machine.irqs.irqs.size() - 1 - i].requested = machine.topology.online;
}

Machine small_machine() {
    topology::Topology topology;
    topology.possible = topology.present = topology.online = topology.housekeeping = CpuSet{0, 1};
    topology.packages = {CpuSet{0, 1}};
    topology.cores = {CpuSet{0}, CpuSet{1}};
    topology.caches = {{3, topology::Cache::Type::unified, 1U << 20, CpuSet{0, 1}}};
    topology.nodes = {{0, CpuSet{0, 1}, 1U << 30, {10}}};
    for (const unsigned cpu : {0U, 1U})
        topology.cpus.push_back({cpu, 0, {}, {}, static_cast<int>(cpu), 0, {}, CpuSet{cpu}});
    return {std::move(topology), {}, {}};
}

/// The shipped set planned on one machine: where each task belongs, by policy.
struct Planned {
    struct Placed {
        std::string comm;
        CpuSet mask, slot;
    };
    policy::PolicySet set;
    Placements placements;
    std::map<std::string, std::vector<Placed>> tasks;

    Planned(policy::PolicySet policies, const Machine& machine, const std::vector<Fake>& processes)
        : set(std::move(policies)) {
        const Matcher matcher(set);
        std::vector<std::size_t> policy_of;
        NicUsage usage;
        std::vector<std::string> nics;
        for (const auto& nic : machine.nics)
            nics.push_back(nic.name);
        for (const auto& process : processes) {
            const auto policy = matcher.match(process.facts, test::NoLineage{});
            EXPECT_TRUE(policy) << process.facts.comm_text << " is matched by no shipped policy";
            policy_of.push_back(policy.value_or(0));
            const auto& wanting = set.policies[policy_of.back()];
            usage[wanting.name][nics] +=
                distributes_threads(wanting.placement) ? static_cast<unsigned>(process.threads.size()) : 1;
        }
        placements = compile(set, machine, usage);
        Assignments assignments;
        const test::NoUndo undo;
        const Planning planning{placements, assignments, undo};
        for (std::size_t i = 0; i < processes.size(); ++i)
            for (unsigned index = 0; index < processes[i].threads.size(); ++index) {
                const auto& thread = processes[i].threads[index];
                const auto plan = plan_thread(
                    planning, {.id = processes[i].facts.task, .policy = policy_of[i], .nics = &nics},
                    {thread, index});
                EXPECT_TRUE(plan.target) << thread.comm;
                if (!plan.target) continue;
                EXPECT_TRUE(plan.action || plan.target->mask == thread.allowed) << thread.comm;
                tasks[set.policies[policy_of[i]].name].push_back(
                    {thread.comm, plan.target->mask, plan.target->slot});
            }
    }
    [[nodiscard]] const ResolvedPolicy& resolved(const std::string& name) const {
        return *placements.find(name);
    }
    /// CPU of each interrupt that a policy placed, in order of queues.
    [[nodiscard]] std::vector<unsigned> interrupts(const std::string& name) const {
        std::vector<unsigned> cpus;
        for (const auto& queue : placements.queues)
            if (queue.policy == name && std::holds_alternative<IrqMask>(queue.subject))
                cpus.push_back(queue.wanted.cpus().first());
        return cpus;
    }
};

/// Policies that may not all claim one NIC are looked at one by one, as an administrator installs them.
Planned plan_one(const policy::Document& document, const Machine& machine, std::vector<Fake> processes) {
    auto read = policy::read_policies({document});
    EXPECT_TRUE(read.diagnostics.empty()) << said(read.diagnostics);
    auto found = check_on_machine(read.set, machine);
    // On small machines there is nothing to choose from, which is noted.
    std::erase_if(found, [](const auto& finding) { return finding.severity == policy::Severity::note; });
    EXPECT_TRUE(found.empty()) << said(found);
    const Matcher matcher(read.set);
    std::erase_if(processes,
                  [&](const auto& process) { return !matcher.match(process.facts, test::NoLineage{}); });
    if (processes.empty() && !read.set.policies.empty()) {
        auto process =
            fake(700, "unknown", "/usr/bin/unknown", "unknown.service", {"helper"}, machine.topology.online);
        satisfy(read.set.policies.front().match, process.facts);
        processes.push_back(std::move(process));
    }
    return {std::move(read.set), machine, processes};
}

void masks_are_sound(const Planned& planned, const Machine& machine) {
    ASSERT_FALSE(planned.tasks.empty());
    EXPECT_TRUE(planned.placements.problems.empty()) << planned.placements.problems.front().message;
    for (const auto& [policy, tasks] : planned.tasks)
        for (const auto& task : tasks) {
            EXPECT_FALSE(task.mask.empty()) << policy << " " << task.comm;
            EXPECT_TRUE(machine.topology.online.contains(task.mask))
                << policy << " " << task.comm << " " << task.mask.to_list();
        }
    for (const auto& queue : planned.placements.queues)
        if (std::holds_alternative<IrqMask>(queue.subject)) {
            EXPECT_EQ(queue.wanted.cpus().count(), 1U) << queue.nic;
            EXPECT_TRUE(machine.topology.online.contains(queue.wanted.cpus())) << queue.nic;
        }
}

/// Of readers, else of tasks.
std::size_t seats_of(const ResolvedPolicy& resolved) {
    std::size_t seats = 0;
    for (const auto& lanes : resolved.nics)
        seats += lanes.seats();
    return seats == 0 ? resolved.distributions.front().size() : seats;
}

/// "each on the core of the NIC queue that feeds it", "one worker after the other, a core each", "both
/// hardware threads".
void nginx_keeps_its_promise(const Planned& planned, const Machine& machine) {
    const auto& tasks = planned.tasks.at("nginx");
    const auto& resolved = planned.resolved("nginx");
    const auto lanes = seats_of(resolved);
    std::set<unsigned> cores;
    for (const auto& task : tasks) {
        EXPECT_EQ(task.mask.to_list(),
                  (machine.topology.core_of(task.slot.first()) & resolved.allowed).to_list());
        cores.insert(machine.topology.core_of(task.mask.first()).first());
    }
    EXPECT_EQ(cores.size(), std::min(lanes, tasks.size())) << "no core twice while another is free";
    for (const unsigned cpu : planned.interrupts("nginx"))
        EXPECT_TRUE(std::ranges::any_of(tasks, [&](const auto& task) { return task.mask.contains(cpu); }))
            << "no worker runs on CPU " << cpu << ", which is interrupted";
}

/// "Each queue's core has a thread."
void haproxy_keeps_its_promise(const Planned& planned, const Machine& machine) {
    const auto& tasks = planned.tasks.at("haproxy");
    for (const auto& task : tasks)
        EXPECT_TRUE(machine.topology.core_of(task.mask.first()).contains(task.mask));
    const auto& nics = planned.resolved("haproxy").nics;
    if (nics.size() != 1 || tasks.size() < nics.front().seats()) return;
    for (const unsigned cpu : planned.interrupts("haproxy"))
        EXPECT_TRUE(std::ranges::any_of(tasks, [&](const auto& task) { return task.mask.contains(cpu); }))
            << "no thread runs on CPU " << cpu << ", which is interrupted";
}

/// "each on a core of its own", "those in the background take no lane". `worker`: how names of workers begin.
void workers_have_cores(const std::vector<Planned::Placed>& tasks, const ResolvedPolicy& resolved,
                        const Machine& machine, std::string_view worker, std::size_t workers) {
    const auto lanes = seats_of(resolved);
    std::set<unsigned> cores;
    std::size_t found = 0;
    for (const auto& task : tasks) {
        if (!task.comm.starts_with(worker)) continue;
        const auto core = machine.topology.core_of(task.mask.first());
        EXPECT_TRUE(core.contains(task.mask)) << task.comm;
        cores.insert(core.first());
        ++found;
    }
    EXPECT_EQ(found, workers);
    EXPECT_GE(cores.size() + 1, std::min(lanes, workers)) << "the main thread may have one of them";
}

void memcached_keeps_its_promise(const Planned& planned, const Machine& machine) {
    const auto& tasks = planned.tasks.at("memcached");
    workers_have_cores(tasks, planned.resolved("memcached"), machine, "mc-worker", 4);
    for (const auto& task : tasks)
        if (task.comm == "mc-log" || task.comm == "mc-lrumaint") {
            EXPECT_EQ(task.mask.to_list(), machine.topology.housekeeping.to_list());
        }
}

void trafficserver_keeps_its_promise(const Planned& planned, const Machine& machine) {
    const auto& tasks = planned.tasks.at("trafficserver");
    workers_have_cores(tasks, planned.resolved("trafficserver"), machine, "[ET_NET ", 4);
    for (const auto& task : tasks)
        if (!task.comm.starts_with("[ET_NET ")) {
            EXPECT_EQ(task.mask.to_list(), machine.topology.housekeeping.to_list());
        }
}

/// "near its NIC, background threads out of the way", "the last-level cache is what counts".
void redis_keeps_its_promise(const Planned& planned, const Machine& machine) {
    const auto& resolved = planned.resolved("redis");
    for (const auto& task : planned.tasks.at("redis")) {
        const bool background = task.comm.starts_with("bio_") || task.comm == "jemalloc_bg_thd";
        const auto wanted = background ? machine.topology.housekeeping
                                       : machine.topology.llc_of(task.mask.first()) & resolved.allowed;
        EXPECT_EQ(task.mask.to_list(), wanted.to_list()) << task.comm;
    }
    const auto& main = planned.tasks.at("redis").front();
    for (const unsigned cpu : planned.interrupts("redis"))
        EXPECT_TRUE(main.mask.contains(cpu)) << "the NIC's interrupts are not with it";
}

/// "dealt out over the cache groups": each inside one, and none twice while another is free.
void postgresql_keeps_its_promise(const Planned& planned, const Machine& machine) {
    const auto& tasks = planned.tasks.at("postgresql");
    const auto& resolved = planned.resolved("postgresql");
    std::set<unsigned> groups;
    std::set<unsigned> usable;
    for (const auto& group : machine.topology.llc_groups())
        if (group.intersects(resolved.allowed)) usable.insert(group.first());
    for (const auto& task : tasks) {
        EXPECT_TRUE(machine.topology.llc_of(task.mask.first()).contains(task.mask)) << task.mask.to_list();
        groups.insert(machine.topology.llc_of(task.mask.first()).first());
    }
    EXPECT_EQ(groups.size(), std::min(usable.size(), tasks.size()));
}

void every_file_on(const Machine& machine) {
    using Promise = void (*)(const Planned&, const Machine&);
    const std::map<std::string, Promise> promises{{"nginx.yaml", nginx_keeps_its_promise},
                                                  {"haproxy.yaml", haproxy_keeps_its_promise},
                                                  {"redis.yaml", redis_keeps_its_promise},
                                                  {"postgresql.yaml", postgresql_keeps_its_promise},
                                                  {"memcached.yaml", memcached_keeps_its_promise},
                                                  {"trafficserver.yaml", trafficserver_keeps_its_promise}};
    std::size_t kept = 0;
    for (const auto& document : shipped()) {
        SCOPED_TRACE(document.path);
        const auto planned = plan_one(document, machine, servers(4, machine.topology.online));
        masks_are_sound(planned, machine);
        const auto promise = promises.find(document.path);
        if (promise == promises.end() || testing::Test::HasFatalFailure()) continue;
        promise->second(planned, machine);
        ++kept;
    }
    EXPECT_EQ(kept, promises.size()) << "a file that this test knows is no longer shipped";
}

TEST(Shipped, FilesAreReadTogetherWithoutFindings) {
    const auto documents = shipped();
    ASSERT_GE(documents.size(), 6U);
    const auto read = policy::read_policies(documents);
    EXPECT_TRUE(read.diagnostics.empty()) << said(read.diagnostics);
    EXPECT_EQ(read.set.policies.size(), documents.size());
    for (const auto& policy : read.set.policies)
        EXPECT_FALSE(policy.description.empty()) << policy.name;
}

TEST(Shipped, NoConditionsCanBeMetByAnyUser) {
    const auto read = policy::read_policies(shipped());
    for (const auto& policy : read.set.policies)
        EXPECT_FALSE(policy::is_forgeable(policy, read.set)) << policy.name;
    EXPECT_EQ(said(policy::advice(read.set)), "");
}

/// By name, path, port, and a unit of the user's own manager.
TEST(Shipped, NoFileWantsAProcessOfAUserThatLooksLikeItsProgram) {
    for (const auto& document : shipped()) {
        const auto set = policy::read_policies({document}).set;
        const auto online = CpuSet{0, 1};
        for (auto process : servers(1, online)) {
            process.facts.cgroup_text.insert(0, "/user.slice/user-1000.slice/user@1000.service");
            process.facts.user_text = "joe";
            process.facts.user_id = 1000;
            EXPECT_FALSE(Matcher(set).match(process.facts, test::NoLineage{}))
                << document.path << " " << process.facts.comm_text;
        }
    }
}

TEST(Shipped, EachProgramIsMatchedByItsOwnFile) {
    const auto read = policy::read_policies(shipped());
    const Matcher matcher(read.set);
    const std::map<std::string, std::string> expected{
        {"nginx", "nginx"},     {"redis-server", "redis"},  {"postgres", "postgresql"},
        {"haproxy", "haproxy"}, {"memcached", "memcached"}, {"[TS_MAIN]", "trafficserver"}};
    for (const auto& process : servers(2, CpuSet{0, 1})) {
        const auto policy = matcher.match(process.facts, test::NoLineage{});
        ASSERT_TRUE(policy) << process.facts.comm_text;
        EXPECT_EQ(read.set.policies[*policy].name, expected.at(process.facts.comm_text));
    }
    EXPECT_FALSE(matcher.match(fake(1, "systemd", "/usr/lib/systemd/systemd", "init.scope", {}, {}).facts,
                               test::NoLineage{}));
}

TEST(Shipped, FilesKeepTheirPromisesOnTwoCpusAndOneNic) {
    for (const unsigned queues : {1U, 2U, 5U}) {
        SCOPED_TRACE(queues);
        auto machine = small_machine();
        add_nic(machine, queues);
        every_file_on(machine);
    }
}

TEST(Shipped, FilesKeepTheirPromisesOnTwoCpusWithoutANic) { every_file_on(small_machine()); }

TEST(Shipped, FilesKeepTheirPromisesOnTwoSockets) {
    auto machine = test::plain(CpuSet{3});
    add_nic(machine, 4);
    every_file_on(machine);
}

class ShippedOn : public testing::TestWithParam<std::string> {};

TEST_P(ShippedOn, FilesKeepTheirPromisesWithoutNicsAndWithOne) {
    auto machine = test::read_recording(GetParam());
    ASSERT_TRUE(machine);
    // Recorded NICs have no queues or no interrupts to place: who is served by them is another test's
    // subject.
    machine->nics.clear();
    link_vectors(*machine);
    every_file_on(*machine);
    add_nic(*machine, 4);
    every_file_on(*machine);
}

constexpr std::uintmax_t largest = 128U
                                   << 10; // of the archive: the largest three take longer than all others

std::string test_name(const testing::TestParamInfo<std::string>& machine) {
    std::string name = machine.param;
    std::ranges::replace(name, '-', '_');
    return name;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ShippedOn);
INSTANTIATE_TEST_SUITE_P(Recorded, ShippedOn, testing::ValuesIn(test::recordings(largest)), test_name);

} // namespace
} // namespace affinityd::planner
