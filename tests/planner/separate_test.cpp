// SPDX-License-Identifier: Apache-2.0
// Interrupts apart from the workers: room for them beside other policies, and who moves when workers come.
#include "lives.hpp"
#include "world.hpp"

namespace affinityd::planner {
namespace {

using test::Dice;
using test::World;

std::string server(const std::string& nic, bool separate = true) {
    return "match: {comm: a}\naffinity: full\nnics: [" + nic +
           "]\nspread: core\nbind: core\nseparate: " + (separate ? "true\n" : "false\n");
}

/// Two cache groups of eight cores in one node.
machine::Machine sixteen() {
    auto machine = test::without_smt(16);
    auto& topology = machine.topology;
    topology.nodes = {{0, topology.online, 1U << 30, {}}};
    topology.packages = {topology.online};
    for (auto& cpu : topology.cpus)
        cpu.node = 0;
    return machine;
}

/// An interface that is near all CPUs alike.
void add_nic(machine::Machine& machine, const std::string& name, unsigned queues, unsigned first_irq) {
    test::add_nic(machine, name, 0, queues, first_irq);
    auto& nic = machine.nics.back();
    nic.ifindex = static_cast<unsigned>(machine.nics.size()) + 1;
    nic.node.reset();
    nic.local_cpus = machine.topology.online;
}

/// How many interrupts are on the core of a lane, whichever policy has it.
std::size_t mixed(const Placements& placements, const topology::Topology& topology) {
    CpuSet cores;
    for (const auto& policy : placements.policies)
        for (const auto& nic : policy.nics)
            for (const auto& lane : nic.lanes)
                for (const unsigned cpu : lane.cpus)
                    cores |= topology.core_of(cpu);
    std::size_t count = 0;
    for (const auto& target : placements.queues)
        if (std::holds_alternative<machine::IrqMask>(target.subject))
            count += target.wanted.cpus().intersects(cores) ? 1U : 0U;
    return count;
}

TEST(Separate, PoliciesWhoseProgramsDoNotRunTakeNoRoom) {
    for (const unsigned others : {0U, 7U, 8U, 20U})
        for (const unsigned workers : {4U, 8U, 12U, 14U}) {
            auto machine = sixteen();
            add_nic(machine, "eth0", workers, 30);
            std::vector<std::string> texts{server("eth0")};
            for (unsigned i = 0; i < others; ++i)
                texts.push_back("match: {comm: idle" + std::to_string(i) + "}\n");
            const World world(texts, machine, {{"p0", {{{"eth0"}, workers}}}});
            EXPECT_EQ(mixed(world.placements, machine.topology), 0U) << others << " " << workers;
            EXPECT_TRUE(world.placements.problems.empty()) << others << " " << workers;
        }
}

TEST(Separate, PoliciesOfOneCacheGroupLeaveItsRoom) {
    auto machine = sixteen();
    add_nic(machine, "eth0", 12, 30);
    std::vector<std::string> texts{server("eth0")};
    for (unsigned i = 0; i < 8; ++i)
        texts.push_back("match: {comm: idle" + std::to_string(i) + "}\ncpus: 0-7\n");
    const World world(texts, machine, {{"p0", {{{"eth0"}, 12}}}});
    EXPECT_EQ(mixed(world.placements, machine.topology), 0U);
    EXPECT_TRUE(world.placements.problems.empty());
}

} // namespace
} // namespace affinityd::planner
