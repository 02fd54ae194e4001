// SPDX-License-Identifier: Apache-2.0
#include "machine/machine.hpp"

#include <algorithm>

namespace affinityd::machine {

const netdev::Nic* Machine::nic(std::string_view name) const {
    const auto found = std::ranges::find_if(nics, [&](const netdev::Nic& nic) {
        return nic.is_called([&](std::string_view own) { return own == name; });
    });
    return found == nics.end() ? nullptr : &*found;
}

std::span<const Vector> Machine::vectors_of(std::string_view nic) const {
    const auto found = vectors.find(nic);
    return found == vectors.end() ? std::span<const Vector>() : found->second;
}

IrqMask named_irq(const Machine& machine, const irq::Irq& line) {
    for (const auto& nic : machine.nics)
        for (const auto& vector : machine.vectors_of(nic.name))
            if (vector.irq == line.number) return irq_subject(nic, vector);
    const auto& label = line.actions.front();
    const auto is_before = [&](const irq::Irq& other) {
        return other.number < line.number && std::ranges::find(other.actions, label) != other.actions.end();
    };
    const auto ordinal = static_cast<unsigned>(std::ranges::count_if(machine.irqs.irqs, is_before));
    const bool is_line = line.actions.size() > 1;
    return {line.pci, label, is_line ? 0 : ordinal, line.number, is_line};
}

void link_vectors(Machine& machine) {
    machine.vectors.clear();
    auto vectors = vectors_of_all(machine.nics, machine.irqs);
    for (std::size_t i = 0; i < vectors.size(); ++i)
        machine.vectors.emplace(machine.nics[i].name, std::move(vectors[i]));
}

} // namespace affinityd::machine
