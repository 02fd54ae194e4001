// SPDX-License-Identifier: Apache-2.0
#include "netdev/lower.hpp"

#include <algorithm>

namespace affinityd::netdev {

Stacks::Stacks(std::span<const Nic> nics) : nics_(nics) {
    for (std::size_t i = 0; i < nics.size(); ++i)
        by_name_.try_emplace(nics[i].name, i);
}

std::vector<const Nic*> Stacks::under(const Nic& nic) const {
    if (nic.lower.empty()) return {&nic};
    const auto known = known_.find(nic.lower);
    return known != known_.end() ? known->second : known_.emplace(nic.lower, walk(nic)).first->second;
}

std::vector<const Nic*> Stacks::walk(const Nic& from) const {
    std::set<std::size_t> seen;
    std::vector<const Nic*> open{&from};
    while (!open.empty()) {
        const Nic* top = open.back();
        open.pop_back();
        for (const auto& name : top->lower)
            if (const auto lower = by_name_.find(name);
                lower != by_name_.end() && seen.insert(lower->second).second)
                open.push_back(&nics_[lower->second]);
    }
    std::vector<const Nic*> bottom;
    for (const std::size_t i : seen)
        if (nics_[i].lower.empty() && is_physical(nics_[i])) bottom.push_back(&nics_[i]);
    return bottom;
}

std::set<std::string_view> Stacks::spares() const {
    std::set<std::string_view> spares, active;
    for (const auto& bond : nics_) {
        std::vector<const Nic*> ports;
        for (const auto& name : bond.lower)
            if (const auto found = by_name_.find(name); found != by_name_.end())
                ports.push_back(&nics_[found->second]);
        // The active one may be in another namespace, or just be leaving: then nothing is known of the
        // others.
        const bool is_known =
            !bond.active_lower || std::ranges::find(bond.lower, *bond.active_lower) != bond.lower.end();
        const bool has_link =
            std::ranges::any_of(ports, [](const Nic* port) { return port->operstate == "up"; });
        if (!is_known || (!bond.active_lower && !has_link)) continue;
        for (const auto* port : ports) {
            const bool carries =
                bond.active_lower ? port->name == *bond.active_lower : port->operstate != "down";
            for (const auto* nic : under(*port))
                (carries ? active : spares).insert(nic->name);
        }
    }
    for (const auto name : active)
        spares.erase(name);
    return spares;
}

} // namespace affinityd::netdev
