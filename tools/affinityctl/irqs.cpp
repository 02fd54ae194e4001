// SPDX-License-Identifier: Apache-2.0
// irqs: the interrupt table with what each line is for.
#include "irq/classify.hpp"
#include "machine_irqs.hpp"
#include "planner/vectors.hpp"
#include "table.hpp"
#include "verb.hpp"

#include <CLI/CLI.hpp>
#include <map>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::irq::Kind;
using affinityd::irq::Line;
using affinityd::netdev::Nic;
using affinityd::planner::Vector;
using nlohmann::json;

json text_or_null(const std::string& text) { return text.empty() ? json() : json(text); }
json number_or_null(const std::optional<unsigned>& number) { return number ? json(*number) : json(); }

json kind_or_null(Kind kind) {
    const auto name = affinityd::planner::to_string(kind);
    return name.empty() ? json() : json(name);
}

/// The interfaces that a line belongs to by list or netlink, each with what is known of it there.
using Owners = std::multimap<unsigned, std::pair<const Nic*, Vector>>;

Owners find_owners(const MachineIrqs& machine) {
    Owners owners;
    for (const auto& nic : machine.nics)
        for (auto& vector : affinityd::planner::nic_vectors(nic, machine.table))
            owners.emplace(vector.irq, std::pair(&nic, vector));
    return owners;
}

json to_json(const Line& line, const Owners& owners) {
    const auto& label = line.label;
    json value{{"irq", line.irq},
               {"device", text_or_null(label.device)},
               {"queue", number_or_null(label.queue)},
               {"kind", kind_or_null(label.kind)},
               {"label", text_or_null(line.action)},
               {"nic", label.is_nic},
               {"driver", text_or_null(label.driver)},
               {"pci", text_or_null(label.pci)},
               {"virtio", text_or_null(label.virtio)},
               {"platform", text_or_null(label.platform)},
               {"shared", line.shared},
               {"source", label.is_nic ? json("label") : json()}};
    if (label.rx_queue && label.rx_queue != label.queue) value["rx_queue"] = *label.rx_queue;
    if (label.tx_queue) value["tx_queue"] = *label.tx_queue;
    const auto [first, last] = owners.equal_range(line.irq);
    for (auto owner = first; owner != last; ++owner) {
        const auto& [nic, vector] = owner->second;
        if (vector.label != line.action || (!label.device.empty() && label.device != nic->name)) continue;
        value["source"] = affinityd::planner::to_string(vector.source);
        value["device"] = nic->name;
        value["nic"] = true;
        value["kind"] = kind_or_null(vector.kind);
        if (!label.is_nic || vector.source == affinityd::planner::Source::netlink)
            value["queue"] = number_or_null(vector.queue);
        break;
    }
    return value;
}

json to_json(const MachineIrqs& machine, bool nics_only) {
    std::vector<affinityd::irq::Device> devices;
    for (const auto& nic : machine.nics)
        if (!nic.device.empty()) devices.push_back(affinityd::planner::to_device(nic));
    const auto owners = find_owners(machine);
    auto list = json::array();
    const auto lines = affinityd::irq::classify(machine.table, devices);
    auto line = lines.begin();
    for (const auto& irq : machine.table.irqs) {
        const bool bare = irq.actions.empty(); // nobody has asked for it: no classified line stands for it
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

void print(const json& list, const Globals& globals) {
    Table table({"IRQ", "DEVICE", "QUEUE", "KIND", "SOURCE", "REQUESTED", "EFFECTIVE", "LABEL", "COUNT"});
    for (const auto& line : list) {
        const auto kind = line["kind"].is_null() ? std::string("data?") : line["kind"].get<std::string>();
        const bool has_rate = line["rate"].is_object();
        table.add({cell(line["irq"]), cell(line["device"]), cell(line["queue"]), kind == "none" ? "-" : kind,
                   cell(line["source"]), cell(line["requested"]), cell(line["effective"]),
                   cell(line["label"]),
                   has_rate ? busiest(line["rate"], 3, "/s") : busiest(line["counts"], 3, "")});
    }
    fmt::print("{}", table.to_string(globals.color));
}

} // namespace

void add_irqs(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand(
        "irqs", "the interrupts: which are a NIC's, of which queue, where they go, how often");
    struct Options {
        bool nics = false;
        double interval = 0;
    };
    auto options = std::make_shared<Options>();
    verb->add_flag("--nics", options->nics, "only lines of network interfaces");
    verb->add_option("--interval", options->interval,
                     "seconds to watch, for rates instead of counts since boot")
        ->check(CLI::Range(0.05, 3600.0));
    verb->callback([&globals, &status, options] {
        std::optional<std::chrono::milliseconds> interval;
        if (options->interval > 0)
            interval = std::chrono::milliseconds(static_cast<long>(options->interval * 1000));
        const auto machine = read_machine_irqs(globals, interval);
        if (!machine) {
            fmt::print(stderr, "affinityctl: {}\n", machine.error().to_string());
            status = exit_failure;
            return;
        }
        if (machine->table.irqs.empty() && machine->table.special.empty()) {
            fmt::print(stderr, "affinityctl: {}: there is no interrupt table\n", globals.root);
            status = exit_failure;
            return;
        }
        const auto list = to_json(*machine, options->nics);
        // Labels are names from drivers: bytes that are no UTF-8 must not end the output.
        if (globals.json)
            fmt::print("{}\n", list.dump(2, ' ', false, json::error_handler_t::replace));
        else
            print(list, globals);
    });
}

} // namespace affinityctl
