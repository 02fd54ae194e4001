// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/subject.hpp"
#include "topology/topology.hpp"

/// What the executor's tests change, on a machine of four CPUs.
namespace affinityd::test {

inline const machine::TaskMask task{{10, 100}, 10, "a"};
inline const machine::IrqMask irq{"devices/d", "eth0-TxRx-0", 0, 30};
inline const CpuSet all = CpuSet::range(0, 3);

inline topology::Topology four_cpus() {
    topology::Topology topology;
    topology.possible = topology.present = topology.online = all;
    return topology;
}

} // namespace affinityd::test
