// SPDX-License-Identifier: Apache-2.0
#include "experiments/frame/usable_cpus.hpp"

#include "host/scheduler.hpp"

namespace affinityd::experiments {

Result<CpuSet> usable_cpus(const topology::Topology& topology) {
    const auto allowed = host::get_affinity(0);
    if (!allowed) return fail("cannot read on which CPUs this program may run", {}, allowed.error());
    return *allowed & topology.online;
}

} // namespace affinityd::experiments
