// SPDX-License-Identifier: Apache-2.0
#include "accounting/nic_memory.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::accounting {

void NicMemory::begin(std::chrono::seconds now) {
    now_ = now;
    noted_.merge(known_);
    known_ = std::exchange(noted_, {});
}

std::vector<std::string> NicMemory::note(const TaskId& process, const std::vector<std::string>& seen) {
    std::vector<Sight> sights;
    if (auto node = known_.extract(process)) sights = std::move(node.mapped());
    for (const auto& nic : seen) {
        const auto sight = std::ranges::find(sights, nic, &Sight::nic);
        if (sight == sights.end())
            sights.push_back({nic, now_});
        else
            sight->last = now_;
    }
    std::erase_if(sights, [&](const Sight& sight) { return now_ - sight.last >= term; });
    if (sights.empty()) return {};
    std::ranges::sort(sights, {}, &Sight::nic);
    std::vector<std::string> names;
    for (const auto& sight : sights)
        names.push_back(sight.nic);
    noted_.insert_or_assign(process, std::move(sights));
    return names;
}

void NicMemory::end() { known_ = std::exchange(noted_, {}); }

} // namespace affinityd::accounting
