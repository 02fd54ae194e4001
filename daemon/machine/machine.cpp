// SPDX-License-Identifier: Apache-2.0
#include "machine/machine.hpp"

#include "machine/candidates.hpp"

#include <algorithm>

namespace affinityd::machine {

const netdev::Nic* Machine::nic(std::string_view name) const {
    const auto found = std::ranges::find(nics, name, &netdev::Nic::name);
    return found == nics.end() ? nullptr : &*found;
}

std::span<const Vector> Machine::vectors_of(std::string_view nic) const {
    const auto found = vectors.find(nic);
    return found == vectors.end() ? std::span<const Vector>() : found->second;
}

void link_vectors(Machine& machine) {
    machine.vectors.clear();
    const auto lines = possible_lines(machine.nics, machine.irqs);
    for (std::size_t i = 0; i < lines.size(); ++i)
        machine.vectors.emplace(machine.nics[i].name,
                                vectors_among(lines[i], machine.nics[i], machine.irqs.cpus.size()));
}

} // namespace affinityd::machine
