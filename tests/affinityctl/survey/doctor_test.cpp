// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/survey/doctor.hpp"
#include "planner/machines.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace affinityctl::survey {
namespace {

using namespace affinityd;
using namespace affinityd::planner::test;
using planner::Placements;

/// A healthy machine: two nodes of four CPUs, eth0 near node 0 with four queues whose packets are sent by
/// maps, and a server of a master and two workers under `policy`.
struct Patient {
    policy::PolicySet set;
    Machine machine = plain();
    Placements placements{};
    std::vector<ExaminedProcess> processes{};

    explicit Patient(const std::string& policy) : set(policies({policy})) {
        add_nic(machine, "eth0", 0, 4, 40);
        for (auto& queue : machine.nics[0].queues)
            if (queue.direction == netdev::Direction::tx) queue.steering = CpuSet{queue.index};
        for (auto& line : machine.irqs.irqs)
            line.effective = CpuSet{0};
        for (const int pid : {100, 101, 102})
            processes.push_back({.pid = pid,
                                 .parent = pid == 100 ? 1 : 100,
                                 .comm = "server",
                                 .threads = {thread(pid, "server", CpuSet::range(0, 3))},
                                 .last_cpus = {1},
                                 .wanted = CpuSet::range(0, 3),
                                 .private_kib = {{0, 1U << 20}}});
    }
    /// "id: sentence -> mend", the gravest first.
    std::vector<std::string> findings(const std::function<void(Examined&)>& change = {}) {
        placements = planner::compile(set, machine, {});
        Examined seen{.policies = set,
                      .machine = machine,
                      .placements = placements,
                      .nics = {planner::policy_nics(set.policies[0], machine, {})},
                      .processes = processes};
        for (unsigned cpu = 0; cpu < 8; ++cpu)
            seen.frequencies[cpu] = {"schedutil", "acpi-cpufreq", ""};
        seen.idle_states = {{"POLL", 0, 10}, {"C6", 290, 1000}};
        seen.cpu_time = 100000;
        seen.stolen_time = 999;
        if (change) change(seen);
        std::vector<std::string> texts;
        for (const auto& finding : examine(seen))
            texts.push_back(std::string(finding.id) + ": " + finding.sentence + " -> " + finding.mend);
        return texts;
    }
};

constexpr const char* full = "match: {comm: server}\naffinity: full\nnics: [eth0]\nsteer: accept\n";
constexpr const char* near = "match: {comm: server}\ncpus: 0-3\nbind: node\n";
const std::vector<std::string> none;

TEST(Doctor, FindsNothingOnAHealthyMachine) {
    EXPECT_EQ(Patient(full).findings(), none);
    EXPECT_EQ(Patient(near).findings(), none);
}

/// A change of what was seen, and the finding; "": none.
struct SeenCase {
    const char* name;
    const char* policy;
    std::function<void(Examined&)> change;
    std::string finding;
};

TEST(Doctor, FindsWhatWasSeen) {
    const auto irqbalance = [](std::set<unsigned> spared) {
        return [spared](Examined& seen) { seen.irqbalance = 812, seen.spared_irqs = spared; };
    };
    const auto governed = [](FrequencyChoice choice) {
        return [choice](Examined& seen) { seen.frequencies[3] = choice; };
    };
    const SeenCase cases[] = {
        {"irqbalance", full, irqbalance({40}),
         "irqbalance: irqbalance (pid 812) may move 3 of the 4 interrupts that are under policy -> "
         "systemctl disable --now irqbalance"},
        {"irqbalance that leaves them alone", full, irqbalance({40, 41, 42, 43}), ""},
        {"irqbalance without interrupts under policy", near, irqbalance({}), ""},
        {"scheduler", near, [](Examined& seen) { seen.scheduler = "rusty"; },
         "sched-ext: the sched_ext scheduler rusty chooses the CPUs of all tasks by its own rules -> "
         "systemctl stop scx_loader scx"},
        {"tuned", near,
         [](Examined& seen) {
             seen.tuned = 7, seen.tuned_profile = "cpu-partitioning", seen.tuned_cores = "2-3";
         },
         "tuned: TuneD (pid 7) runs profile cpu-partitioning, which sets masks of tasks and interrupts "
         "(isolated cores 2-3) -> tuned-adm profile throughput-performance"},
        {"tuned with another profile", near,
         [](Examined& seen) { seen.tuned = 7, seen.tuned_profile = "throughput-performance"; }, ""},
        {"tuned that does not run", near, [](Examined& seen) { seen.tuned_profile = "realtime"; }, ""},
        {"one listener", full,
         [](Examined& seen) {
             seen.listeners = {{80, {100, 101, 102}}};
         },
         "reuseport-off: 2 workers of policy p0 take the connections of port 80 from one socket, so none "
         "can be steered -> a socket for each worker: \"listen 80 reuseport;\" in nginx, SO_REUSEPORT in "
         "other servers"},
        {"one listener of a master and a worker", full,
         [](Examined& seen) {
             seen.listeners = {{80, {100, 101}}};
         },
         ""},
        {"one listener that is not steered", near,
         [](Examined& seen) {
             seen.listeners = {{80, {100, 101, 102}}};
         },
         ""},
        {"low frequency", near, governed({"powersave", "acpi-cpufreq", ""}),
         "powersave: 1 of 8 CPUs keep to a low frequency (governor powersave), so measurements show that "
         "and not affinity -> cpupower frequency-set -g performance"},
        {"the usual governor of Intel's driver", near,
         governed({"powersave", "intel_pstate", "balance_performance"}), ""},
        {"its lowest preference", near, governed({"powersave", "intel_pstate", "power"}),
         "powersave: 1 of 8 CPUs keep to a low frequency (governor powersave, preference power), so "
         "measurements show that and not affinity -> cpupower frequency-set -g performance"},
        {"deep sleep", near,
         [](Examined& seen) {
             seen.idle_states.push_back({"C10", 680, 1234});
         },
         "deep-idle: the first CPU went 1,234 times into state C10, which takes 680 us to leave: "
         "measurements "
         "show that too -> cpupower idle-set -D 500"},
        {"deep sleep that is never used", near,
         [](Examined& seen) {
             seen.idle_states.push_back({"C10", 680, 0});
         },
         ""},
        {"stolen time", near, [](Examined& seen) { seen.stolen_time = 3170; },
         "steal: other guests of the host took 3.2 % of the CPU time of this one since it started -> on "
         "the host: virsh vcpupin GUEST VCPU CPU"},
        {"threads on two nodes", near,
         [](Examined& seen) {
             seen.processes[1].threads[0].allowed = CpuSet::range(0, 7);
             seen.processes[1].threads.push_back(thread(111, "server"));
             seen.processes[1].last_cpus = {1, 6};
         },
         "two-nodes: 1 process of policy p0 should be on one node: pid 101 (server), 1 "
         "on node 0, 1 on node 1 -> affinityctl apply"},
        {"a thread that sleeps since it was bound", near,
         [](Examined& seen) {
             seen.processes[1].threads.push_back(thread(111, "server", CpuSet::range(0, 3)));
             seen.processes[1].last_cpus = {1, 6};
         },
         ""},
        {"memory on the other node", near,
         [](Examined& seen) {
             seen.processes[2].private_kib = {{0, 300U << 10}, {1, 100U << 10}};
         },
         "far-memory: 1 process of policy p0: pid 102 (server) runs on node 0, and 100 of its 400 MiB are "
         "on other nodes -> policy p0: memory: follow"},
        {"little memory on the other node", near,
         [](Examined& seen) {
             seen.processes[2].private_kib = {{0, 3U << 10}, {1, 9U << 10}};
         },
         ""},
        {"a small share of it", near,
         [](Examined& seen) {
             seen.processes[2].private_kib = {{0, 1U << 20}, {1, 100U << 10}};
         },
         ""},
    };
    for (const auto& test : cases)
        EXPECT_EQ(Patient(test.policy).findings(test.change),
                  test.finding.empty() ? none : std::vector<std::string>{test.finding})
            << test.name;
    EXPECT_EQ(Patient(std::string(near) + "memory: follow\n").findings([](Examined& seen) {
        seen.processes[2].private_kib = {{0, 300U << 10}, {1, 100U << 10}};
    }),
              none);
}

/// A change of the machine, and the finding; "": none.
struct MachineCase {
    const char* name;
    std::string policy;
    std::function<void(Patient&)> change;
    std::string finding;
};

TEST(Doctor, FindsFaultsOfTheMachine) {
    const auto isolate = [](Patient& patient) {
        auto& topology = patient.machine.topology;
        topology.isolated = {2, 3};
        topology.housekeeping = topology.online - topology.isolated;
    };
    const auto stray = [&](Patient& patient) {
        isolate(patient);
        auto& table = patient.machine.irqs;
        table.cpus = {0, 1, 2, 3, 4, 5, 6, 7};
        table.irqs.push_back({.number = 9,
                              .actions = {"disk"},
                              .counts = {5, 0, 1234, 0, 0, 0, 0, 0},
                              .requested = CpuSet::range(0, 7),
                              .effective = CpuSet{2}});
    };
    const auto queues = [](auto change) {
        return [change](Patient& patient) {
            for (auto& queue : patient.machine.nics[0].queues)
                change(queue);
        };
    };
    const auto no_maps = queues([](netdev::Queue& queue) { queue.steering = CpuSet(); });
    const auto workers = [](Patient& patient) {
        patient.machine.nics[0].queues.clear();
        patient.machine.nics[0].queues.push_back({netdev::Direction::rx, 0, {}, {}, {}, CpuSet{}, {}});
    };
    const auto left = [](Patient& patient) {
        auto& nic = patient.machine.nics[0];
        for (unsigned i = 4; i < 8; ++i)
            nic.queues.push_back({netdev::Direction::rx, i, {}, {}, {}, CpuSet{}, {}});
        nic.queues[2].steering = CpuSet::range(0, 3);
    };
    const auto named = [](bool is_moved) {
        return [is_moved](Patient& patient) {
            patient.machine.irqs.irqs[1].writable = is_moved;
            patient.machine.nics.clear();
            machine::link_vectors(patient.machine);
        };
    };
    const std::string disk = "affinity: irq\nirqs: [disk]\ncpus: 0-1\n";
    const std::string irqs = "affinity: irq\nirqs: [\"eth0-TxRx-*\"]\ncpus: 0-1\n";
    const MachineCase cases[] = {
        {"isolated CPUs among others", near, isolate,
         "isolated-cpus: policy p0 has isolated CPUs (2-3) among others (0-1): the kernel balances no load "
         "over isolated CPUs -> policy p0: cpus: 0-1"},
        {"isolated CPUs alone", "match: {comm: server}\ncpus: isolated\n", isolate, ""},
        {"an interrupt on one", "match: {comm: server}\n", stray,
         "irq-on-isolated: 1 interrupt is on CPUs that are set apart (2-3): IRQ 9 (disk) came 1,234 times to "
         "CPU 2 -> a policy: {version: 1, affinity: irq, irqs: [\"disk\"], cpus: \"housekeeping - (2-3)\"}"},
        {"interrupts that the kernel has spread", "match: {comm: server}\n",
         [&](Patient& patient) {
             stray(patient);
             auto& irqs = patient.machine.irqs.irqs;
             irqs.back().actions = {"nvme0q1"};
             irqs.back().requested = CpuSet{2};
             irqs.push_back(irqs.back());
             irqs.back().number = 10;
             irqs.back().actions = {"nvme0q2"};
             irqs.back().requested = CpuSet{1};
         },
         ""},
        {"an interrupt that is under policy", disk, stray, ""},
        {"a far NIC",
         "match: {comm: server}\naffinity: full\nnics: [eth0]\ncpus: 4-7\n",
         {},
         "nic-far: policy p0 runs on CPUs 4-7, and none of them is on node 0, where its NIC eth0 is -> "
         "policy p0: cpus: node:0"},
        {"one queue", full, workers,
         "few-queues: eth0 has 1 receive queue for the 2 workers of policy p0 -> ethtool -L eth0 combined 2"},
        {"one queue, and the device has no more", full,
         [&](Patient& patient) {
             workers(patient);
             patient.machine.nics[0].channels = {.combined = 1, .max_combined = 1};
         },
         ""},
        {"RPS left", near, left,
         "rps-left: eth0 has 8 receive queues for 8 CPUs, and 1 of them still pass packets on to other CPUs "
         "(RPS) -> a policy: {version: 1, affinity: irq, nics: [eth0]}"},
        {"RPS left, which a policy takes away", full, left, ""},
        {"RPS of few queues", near,
         [](Patient& patient) { patient.machine.nics[0].queues[2].steering = CpuSet::range(0, 3); }, ""},
        {"no XPS", near, no_maps,
         "xps-unset: eth0 sends through 4 queues, and none has a map of CPUs (XPS) -> a policy: {version: "
         "1, affinity: irq, nics: [eth0]}"},
        {"no XPS, which a policy sets", full, no_maps, ""},
        {"no XPS in the kernel", near, queues([](netdev::Queue& queue) { queue.steering.reset(); }), ""},
        {"a label of no known form", near,
         [](Patient& patient) {
             for (auto& vector : patient.machine.vectors.find("eth0")->second)
                 vector.known = false, vector.label = "eth0:hw7_" + std::to_string(*vector.queue);
         },
         "unknown-label: 4 interrupts of eth0 with labels of no known form, such as eth0:hw7_0, are dealt "
         "out without regard to queues -> /etc/affinityd/labels.d/local.yaml: {version: 1, labels: "
         "[{label: \"{IF}:hw7_{N}\", kind: rxtx}]}"},
        {"an interrupt that the kernel keeps", irqs, named(false),
         "managed-irq: the kernel lets no program move 1 interrupt that policy p0 wants placed, such as IRQ "
         "41 (eth0-TxRx-1) -> policy p0: leave eth0-TxRx-1 out of irqs, or its interface out of nics"},
        {"none that it keeps", irqs, named(true), ""},
    };
    for (const auto& test : cases) {
        Patient patient(test.policy);
        if (test.change) test.change(patient);
        EXPECT_EQ(patient.findings(), test.finding.empty() ? none : std::vector<std::string>{test.finding})
            << test.name;
    }
}

TEST(Doctor, CountsPrivateMemoryByNode) {
    struct {
        const char* text;
        std::map<unsigned, std::uint64_t> kib;
    } const cases[] = {
        {"", {}},
        {"7f00 default anon=3 dirty=3 active=0 N0=1 N1=2 kernelpagesize_kB=4", {{0, 4}, {1, 8}}},
        {"7f00 default file=/lib/libc.so anon=1 mapped=9 N0=9 kernelpagesize_kB=4", {}},
        {"7f00 default heap anon=2 N1=2 kernelpagesize_kB=4\n7f01 default anon=1 huge N1=1 "
         "kernelpagesize_kB=2048\n",
         {{1, 2056}}},
        {"7f00 default anon=x N0= N=4 Nx=1 N0=1 =\n", {{0, 4}}},
    };
    for (const auto& test : cases)
        EXPECT_EQ(private_memory(test.text), test.kib) << test.text;
}

} // namespace
} // namespace affinityctl::survey
