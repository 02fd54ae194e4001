// SPDX-License-Identifier: Apache-2.0
// All interfaces of a machine are linked with their interrupts in one go.
#include "machine/labels.hpp"
#include "machines.hpp"

#include <algorithm>
#include <ctime>

#include <gtest/gtest.h>

namespace affinityd::machine {
namespace {

/// So many interfaces with four vectors each.
Machine many(unsigned nics) {
    Machine machine = test::plain();
    machine.irqs.labels = builtin_labels();
    for (unsigned i = 0; i < nics; ++i) {
        const auto name = "p" + std::to_string(i);
        machine.nics.push_back(test::nic(name, 0, 4, 100 + 4 * i));
        for (unsigned queue = 0; queue < 4; ++queue) {
            irq::Irq line;
            line.number = 100 + 4 * i + queue;
            line.chip = "PCI-MSIX";
            line.actions = {name + "-TxRx-" + std::to_string(queue)};
            machine.irqs.irqs.push_back(std::move(line));
        }
    }
    return machine;
}

/// CPU time; the best of several.
double cost_of_finding_lines(const Machine& machine) {
    double best = 1e12;
    for (int i = 0; i < 3; ++i) {
        const auto begin = std::clock();
        EXPECT_EQ(vectors_of_all(machine.nics, machine.irqs).size(), machine.nics.size());
        best = std::min(best, static_cast<double>(std::clock() - begin));
    }
    return best;
}

TEST(Linking, GivesAllInterfacesAtOnceTheVectorsThatEachHasAlone) {
    auto machine = many(30); // p1 is in the labels of p10, p11, ... too
    link_vectors(machine);
    for (const auto& nic : machine.nics) {
        EXPECT_EQ(machine.vectors.at(nic.name), nic_vectors(nic, machine.irqs)) << nic.name;
        EXPECT_EQ(machine.vectors.at(nic.name).size(), 4U) << nic.name;
    }
}

TEST(Linking, FindsLinesInATimeThatGrowsWithTheNumberOfInterfacesAlone) {
    const auto few = cost_of_finding_lines(many(200));
    EXPECT_LT(cost_of_finding_lines(many(2000)), few * 40); // ten times as many
}

} // namespace
} // namespace affinityd::machine
