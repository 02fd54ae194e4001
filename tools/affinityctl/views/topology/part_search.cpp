// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/topology/part_search.hpp"

namespace affinityctl {

using affinityd::topology::Part;

PartSearch::PartSearch(const Part& machine) : machine_(machine) { add(machine); }

void PartSearch::add(const Part& part) {
    for (const auto& inner : part.parts) {
        const bool is_deepest = part.kind == Part::Kind::core || inner.kind == Part::Kind::cpu;
        if (is_deepest) {
            for (const unsigned cpu : inner.cpus)
                deepest_[cpu] = &part;
        } else {
            outer_[&inner] = &part;
            add(inner);
        }
    }
}

const Part& PartSearch::smallest_holding(const affinityd::CpuSet& cpus) const {
    if (cpus.empty()) return machine_;
    const auto deepest = deepest_.find(cpus.first());
    const Part* at = deepest == deepest_.end() ? &machine_ : deepest->second;
    while (at != &machine_ && !at->cpus.contains(cpus))
        at = outer_.at(at);
    return *at;
}

} // namespace affinityctl
