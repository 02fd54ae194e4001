// SPDX-License-Identifier: Apache-2.0
#include "netdev/lower.hpp"

#include <algorithm>
#include <iterator>

namespace affinityd::netdev {

Stacks::Stacks(std::span<const Nic> nics) : nics_(nics) {
    for (std::size_t i = 0; i < nics.size(); ++i)
        by_name_.try_emplace(nics[i].name, i);
}

const Nic* Stacks::find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &nics_[found->second];
}

std::vector<const Nic*> Stacks::under(const Nic& nic) const {
    if (nic.lower.empty()) return takes_ports(nic) ? std::vector<const Nic*>{} : std::vector{&nic};
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
    std::vector<const Nic*> bottom, ends;
    for (const std::size_t i : seen) {
        const auto& nic = nics_[i];
        if (nic.lower.empty() && is_physical(nic)) bottom.push_back(&nic);
        if (nic.lower.empty() && nic.master.empty() && !nic.is_representor && !takes_ports(nic))
            ends.push_back(&nic);
    }
    if (bottom.empty()) return ends; // the end of a pair: in a container, the NIC
    return bottom;
}

/// The interfaces directly below one that carry its traffic. No value: nothing is known of any.
std::optional<Stacks::Carriers> Stacks::carriers(const Nic& upper) const {
    std::vector<std::size_t> ports;
    for (const auto& name : upper.lower)
        if (const auto found = by_name_.find(name); found != by_name_.end()) ports.push_back(found->second);
    // The active one may be in another namespace, or just be leaving: then nothing is known of the others.
    const bool is_known =
        !upper.active_lower || std::ranges::find(upper.lower, *upper.active_lower) != upper.lower.end();
    const auto has_link = [&](std::size_t port) { return nics_[port].operstate == "up"; };
    if (!is_known || (!upper.active_lower && std::ranges::none_of(ports, has_link))) return std::nullopt;
    Carriers found{ports, {}};
    std::ranges::copy_if(ports, std::back_inserter(found.active), [&](std::size_t port) {
        return upper.active_lower ? nics_[port].name == *upper.active_lower : nics_[port].operstate != "down";
    });
    return found;
}

/// Each interface above says which of those directly below it carry its traffic. An interface is spare if all
/// those above it use others: then what is below it is spare, too.
std::set<std::string_view> Stacks::spares() const {
    std::vector<std::vector<std::size_t>> active(nics_.size());
    std::vector<bool> is_used(nics_.size(), true);
    for (std::size_t i = 0; i < nics_.size(); ++i)
        if (auto found = carriers(nics_[i])) {
            for (const std::size_t port : found->ports)
                is_used[port] = false;
            active[i] = std::move(found->active);
        }
    std::vector<std::size_t> open; // from the top
    for (std::size_t i = 0; i < nics_.size(); ++i)
        if (is_used[i]) open.push_back(i);
    while (!open.empty()) {
        const auto upper = open.back();
        open.pop_back();
        for (const std::size_t port : active[upper])
            if (!is_used[port]) {
                is_used[port] = true;
                open.push_back(port);
            }
    }
    std::set<std::string_view> spares;
    for (std::size_t i = 0; i < nics_.size(); ++i)
        if (!is_used[i] && nics_[i].lower.empty()) spares.insert(nics_[i].name);
    return spares;
}

} // namespace affinityd::netdev
