// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/topology/cpu_list.hpp"

#include "affinityctl/values/counted.hpp"

namespace affinityctl {

std::string short_list(const affinityd::CpuSet& cpus) {
    constexpr std::size_t most = 160, kept = 80;
    std::string list = cpus.to_list();
    if (list.size() <= most) return list;
    list.resize(list.rfind(',', kept) + 1);
    return list + "... (" + counted(cpus.count(), "CPU") + ")";
}

} // namespace affinityctl
