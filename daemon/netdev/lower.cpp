// SPDX-License-Identifier: Apache-2.0
#include "netdev/lower.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace affinityd::netdev {

std::vector<const Nic*> physical_lower(const Nic& nic, std::span<const Nic> nics) {
    if (nic.lower.empty()) return {&nic};
    struct Visit {
        const Nic* nic;
        bool is_seen;
    };
    std::unordered_map<std::string_view, Visit> by_name;
    for (const auto& candidate : nics)
        by_name.try_emplace(candidate.name, Visit{&candidate, false});
    std::vector<const Nic*> open{&nic};
    while (!open.empty()) {
        const Nic* top = open.back();
        open.pop_back();
        for (const auto& name : top->lower) {
            const auto lower = by_name.find(name);
            if (lower == by_name.end() || lower->second.is_seen) continue;
            lower->second.is_seen = true;
            open.push_back(lower->second.nic);
        }
    }
    std::vector<const Nic*> bottom;
    for (const auto& candidate : nics) {
        const auto visit = by_name.find(candidate.name);
        if (candidate.lower.empty() && visit->second.nic == &candidate && visit->second.is_seen)
            bottom.push_back(&candidate);
    }
    return bottom;
}

} // namespace affinityd::netdev
