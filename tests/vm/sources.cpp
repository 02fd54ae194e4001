// SPDX-License-Identifier: Apache-2.0
// vm-sources NIC...: what each source of knowledge about a NIC's interrupts says alone, and where a policy
// then puts the interrupts. Prints a JSON object: {source: {NIC: {IRQ: [kind, queue, wanted CPUs]}}}.
#include "host/root.hpp"
#include "machine/reader.hpp"
#include "planner/placements.hpp"
#include "policy/reader.hpp"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace affinityd;
using machine::Source;

/// The machine as it would look if only `source` knew which interrupts a NIC has and what they do.
machine::Machine only(Source source, machine::Machine hardware) {
    for (auto& nic : hardware.nics) {
        if (source != Source::msi_irqs) nic.msi_irqs.clear();
        if (source == Source::netlink) continue;
        for (auto& queue : nic.queues)
            queue.irq.reset();
    }
    for (auto& line : hardware.irqs.irqs) {
        line.pci.clear(); // as with interrupt chips that do not name the function
        if (source != Source::netlink) continue;
        for (auto& action : line.actions)
            action = "unknown";
    }
    machine::link_vectors(hardware);
    return hardware;
}

policy::PolicySet policies(std::span<const std::string> nics) {
    std::vector<policy::Document> documents;
    for (const auto& nic : nics)
        documents.push_back({nic + ".yaml", "version: 1\nmatch: {comm: nobody}\naffinity: irq\nnics: [" +
                                                nic + "]\nbind: cpu\n"});
    return policy::read_policies(documents).set;
}

nlohmann::json told(const machine::Machine& hardware, std::span<const std::string> nics) {
    const auto set = policies(nics);
    const auto placements = planner::compile(set, hardware, {});
    nlohmann::json result = nlohmann::json::object();
    for (const auto& name : nics) {
        auto& found = result[name] = nlohmann::json::object();
        const auto* nic = hardware.nic(name);
        if (nic == nullptr) continue;
        for (const auto& vector : hardware.vectors_of(nic->name)) {
            if (vector.kind == irq::Kind::none || vector.kind == irq::Kind::control) continue;
            const auto target =
                std::ranges::find_if(placements.queues, [&](const planner::QueueTarget& each) {
                    const auto* mask = std::get_if<planner::IrqMask>(&each.subject);
                    return mask != nullptr && mask->irq == vector.irq;
                });
            const auto wanted =
                target == placements.queues.end() ? std::string() : target->wanted.to_string();
            const auto queue = vector.queue ? nlohmann::json(*vector.queue) : nlohmann::json();
            found[std::to_string(vector.irq)] = {machine::to_string(vector.kind), queue, wanted};
        }
    }
    return result;
}

} // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> nics(argv + 1, argv + argc);
    const auto root = host::Root::open();
    const auto hardware = root ? machine::read_machine(*root) : std::unexpected(root.error());
    if (!hardware) {
        std::cerr << hardware.error().to_string() << '\n';
        return 1;
    }
    nlohmann::json all;
    for (const auto source : {Source::netlink, Source::msi_irqs, Source::label})
        all[std::string(machine::to_string(source))] = told(only(source, *hardware), nics);
    all["all"] = told(*hardware, nics);
    std::cout << all.dump() << '\n';
}
