// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/machine.hpp"

#include <map>
#include <string>
#include <vector>

namespace affinityd::machine {

/// CPUs near one interface, cut to the online ones; all online CPUs if its place is unknown, or if none of
/// them is online.
[[nodiscard]] CpuSet near_cpus(const Machine& machine, const netdev::Nic& nic);

/// The same of every interface, by each of its names, and of one that is on top of others (a bond) near any
/// of the physical ones: for CPU-set expressions.
[[nodiscard]] std::map<std::string, CpuSet, std::less<>> nic_cpus(const Machine& machine);

/// Members of `allowed` that may stand in for `cpu`, nearest first: its core, its cache group, its node, the
/// rest. Online CPUs only, each once, never `cpu` itself.
[[nodiscard]] std::vector<unsigned> nearest_others(const topology::Topology& topology, unsigned cpu,
                                                   const CpuSet& allowed);

} // namespace affinityd::machine
