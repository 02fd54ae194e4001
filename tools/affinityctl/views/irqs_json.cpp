// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/irq_counts.hpp"
#include "affinityctl/views/json_text.hpp"
#include "irq/classify.hpp"
#include "machine/vectors.hpp"

#include <map>
#include <utility>

namespace affinityctl {

using nlohmann::json;

namespace {

using affinityd::irq::Kind;
using affinityd::irq::Line;
using affinityd::machine::Vector;
using affinityd::netdev::Nic;

json kind_or_null(Kind kind) {
    const auto name = affinityd::machine::to_string(kind);
    return name.empty() ? json() : json(name);
}

/// The interfaces that a line belongs to by MSI list or netlink, each with its vector.
using Owners = std::multimap<unsigned, std::pair<const Nic*, Vector>>;

Owners find_owners(const MachineIrqs& machine) {
    Owners owners;
    for (const auto& nic : machine.nics)
        for (auto& vector : affinityd::machine::nic_vectors(nic, machine.table))
            owners.emplace(vector.irq, std::pair(&nic, vector));
    return owners;
}

json to_json(const Line& line, const Owners& owners) {
    const auto& label = line.label;
    json value{{"irq", line.irq},
               {"device", or_null(label.device)},
               {"queue", or_null(label.queue)},
               {"kind", kind_or_null(label.kind)},
               {"label", or_null(line.action)},
               {"nic", label.is_nic},
               {"driver", or_null(label.driver)},
               {"pci", or_null(label.pci)},
               {"virtio", or_null(label.virtio)},
               {"platform", or_null(label.platform)},
               {"shared", line.shared},
               {"source", label.is_nic ? json("label") : json()}};
    if (label.rx_queue && label.rx_queue != label.queue) value["rx_queue"] = *label.rx_queue;
    if (label.tx_queue) value["tx_queue"] = *label.tx_queue;
    const auto [first, last] = owners.equal_range(line.irq);
    for (auto owner = first; owner != last; ++owner) {
        const auto& [nic, vector] = owner->second;
        if (vector.label != line.action || (!label.device.empty() && label.device != nic->name)) continue;
        value["source"] = affinityd::machine::to_string(vector.source);
        value["device"] = nic->name;
        value["nic"] = true;
        value["kind"] = kind_or_null(vector.kind);
        if (!label.is_nic || vector.source == affinityd::machine::Source::netlink)
            value["queue"] = or_null(vector.queue);
        break;
    }
    return value;
}

} // namespace

json irqs_json(const MachineIrqs& machine, bool nics_only) {
    std::vector<affinityd::irq::Device> devices;
    for (const auto& nic : machine.nics)
        if (!nic.device.empty()) devices.push_back(affinityd::machine::to_device(nic));
    const auto owners = find_owners(machine);
    auto list = json::array();
    const auto lines = affinityd::irq::classify(machine.table, devices);
    auto line = lines.begin();
    for (const auto& irq : machine.table.irqs) {
        const bool bare =
            irq.actions.empty(); // no driver has requested it, so classify() has no entry for it
        const auto add = [&](const Line& classified) {
            auto value = to_json(classified, owners);
            if (nics_only && !value["nic"].get<bool>()) return;
            add_line(value, machine, irq);
            list.push_back(std::move(value));
        };
        if (bare) add(Line{irq.number, {}, {}, false});
        for (; !bare && line != lines.end() && line->irq == irq.number; ++line)
            add(*line);
    }
    return list;
}

} // namespace affinityctl
