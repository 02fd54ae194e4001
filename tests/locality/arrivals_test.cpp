// SPDX-License-Identifier: Apache-2.0
// How packets come to a CPU, on machines that are built here.
#include "locality/locality.hpp"
#include "machine/machines.hpp"

#include <gtest/gtest.h>

namespace affinityd::locality {
namespace {

using machine::Machine;
namespace test = machine::test;

constexpr std::uint64_t here = 4026531840, elsewhere = 4026532000;

/// eth0 with four queues on node 0, whose interrupts 40 to 43 go to CPUs 0 to 3; ifindex 2.
Machine with_nic() {
    auto machine = test::plain();
    test::add_nic(machine, "eth0", 0, 4, 40);
    machine.nics[0].ifindex = 2;
    for (unsigned i = 0; i < 4; ++i)
        machine.irqs.irqs[i].effective = CpuSet{i};
    return machine;
}

std::string text(const Machine& machine, const ReadCount& flow) {
    const auto places = arrival_places({flow}, machine, here, [](int) { return true; });
    return places.size() == 1 && places[0].sources.size() == 1 ? places[0].sources[0] : "not one source";
}

ReadCount flow(unsigned arrival, unsigned device, unsigned napi = 0, std::uint64_t space = here) {
    return {.pid = 1,
            .network_space = space,
            .device = device,
            .napi = napi,
            .arrival = arrival,
            .reader = 0,
            .reads = 10};
}

TEST(Arrivals, AreExplainedByTheInterruptThatGoesThere) {
    EXPECT_EQ(text(with_nic(), flow(2, 2)), "eth0 rx-2 (IRQ 42)");
    EXPECT_EQ(text(with_nic(), flow(7, 2)), "eth0 (no interrupt of it goes there now)");
}

TEST(Arrivals, AreExplainedByTheQueueThatTheKernelNames) {
    auto machine = with_nic();
    machine.nics[0].queues[1].napi_id = 8193;
    EXPECT_EQ(text(machine, flow(1, 2, 8193)), "eth0 rx-1 (IRQ 41)");
    EXPECT_EQ(text(machine, flow(1, 9, 8193, elsewhere)), "eth0 rx-1 (IRQ 41)") << "of a container behind it";
    EXPECT_EQ(text(machine, flow(6, 2, 8193)), "eth0 rx-1 (IRQ 41 on CPU 1)");
    machine.nics[0].queues[1].steering = CpuSet{6};
    EXPECT_EQ(text(machine, flow(6, 2, 8193)), "eth0 rx-1 (IRQ 41 on CPU 1, moved by RPS)");
    machine.nics[0].queues[1].flow_count = 4096;
    EXPECT_EQ(text(machine, flow(6, 2, 8193)), "eth0 rx-1 (IRQ 41 on CPU 1, moved by RPS or RFS)");
    machine.nics[0].queues[1].napi_thread = 77;
    EXPECT_EQ(text(machine, flow(5, 2, 8193)), "eth0 rx-1 (NAPI thread 77)");
}

TEST(Arrivals, OfWhatHasNoInterrupt) {
    auto machine = test::plain();
    auto veth = test::nic("veth0", 0, 2, 0);
    veth.ifindex = 3;
    veth.device.clear();
    veth.msi_irqs.clear();
    machine.nics.push_back(veth);
    EXPECT_EQ(text(machine, flow(1, 3)), "veth0 (no interrupt: where the sender or the NIC below works)");
    machine.nics[0].queues[0].steering = CpuSet{1};
    EXPECT_EQ(text(machine, flow(1, 3)), "veth0 rx-0 (RPS)");
    machine.nics[0].queues[0].napi_id = 8200;
    machine.nics[0].queues[0].napi_thread = 99;
    EXPECT_EQ(text(machine, flow(1, 3, 8200)), "veth0 rx-0 (NAPI thread 99)");
    EXPECT_EQ(text(machine, flow(1, 1)), "loopback (the sender's CPU)");
    EXPECT_EQ(text(machine, flow(1, 3, 0, elsewhere)), "an interface in another network namespace");
    EXPECT_EQ(text(machine, flow(1, 0)), "an interface that is not known");
    EXPECT_EQ(text(machine, flow(1, 42)), "an interface that is not known") << "gone meanwhile";
}

TEST(Arrivals, OverAVlanAreThoseOfTheInterfaceBelow) {
    auto machine = with_nic();
    netdev::Nic vlan;
    vlan.name = "eth0.5";
    vlan.ifindex = 8;
    vlan.lower = {"eth0"};
    machine.nics.push_back(vlan);
    EXPECT_EQ(text(machine, flow(3, 8)), "eth0 rx-3 (IRQ 43)");
}

TEST(Arrivals, AddUpByCpuAndSourceTheBusiestFirst) {
    auto flows = std::vector{flow(1, 2), flow(1, 2), flow(1, 1), flow(0, 2), flow(5, 2)};
    flows[4].arrival.reset();
    const auto places = arrival_places(flows, with_nic(), here, [](int) { return true; });
    ASSERT_EQ(places.size(), 2U);
    EXPECT_EQ(places[0].cpu, 1U);
    EXPECT_EQ(places[0].reads, 30U);
    EXPECT_TRUE(places[0].is_interrupt);
    EXPECT_EQ(places[0].sources,
              (std::vector<std::string>{"eth0 rx-1 (IRQ 41)", "loopback (the sender's CPU)"}));
    EXPECT_TRUE(arrival_places(flows, with_nic(), here, [](int) { return false; }).empty());
}

} // namespace
} // namespace affinityd::locality
