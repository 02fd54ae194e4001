// SPDX-License-Identifier: Apache-2.0
// nics: the network interfaces, their queues and the interrupt of each.
#include "daemon_call.hpp"
#include "host/scheduler.hpp"
#include "machine_irqs.hpp"
#include "nic_status.hpp"
#include "planner/vectors.hpp"
#include "table.hpp"
#include "verb.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::netdev::Direction;
using affinityd::netdev::Nic;
using affinityd::netdev::Queue;
using affinityd::planner::Vector;
using nlohmann::json;

template <class T>
json or_null(const std::optional<T>& value) {
    return value ? json(*value) : json();
}
json or_null(const std::string& text) { return text.empty() ? json() : json(text); }

json to_json(const Queue& queue, bool live) {
    // The thread's CPUs are this machine's business only: a recording's number may be anybody here.
    json thread_cpus;
    if (live && queue.napi_thread)
        if (const auto mask = affinityd::host::get_affinity(*queue.napi_thread))
            thread_cpus = mask->to_list();
    return {{"direction", queue.direction == Direction::rx ? "rx" : "tx"},
            {"index", queue.index},
            {"napi_id", or_null(queue.napi_id)},
            {"napi_thread", or_null(queue.napi_thread)},
            {"napi_thread_cpus", std::move(thread_cpus)},
            {"irq", or_null(queue.irq)},
            {"steering", list_or_null(queue.steering)},
            {"flow_count", or_null(queue.flow_count)}};
}

json to_json(const std::optional<affinityd::netdev::Channels>& channels) {
    if (!channels) return nullptr;
    return {{"rx", or_null(channels->rx)},
            {"tx", or_null(channels->tx)},
            {"combined", or_null(channels->combined)},
            {"other", or_null(channels->other)},
            {"max_rx", or_null(channels->max_rx)},
            {"max_tx", or_null(channels->max_tx)},
            {"max_combined", or_null(channels->max_combined)},
            {"max_other", or_null(channels->max_other)}};
}

json to_json(const Vector& vector, const MachineIrqs& machine) {
    const auto kind = affinityd::planner::to_string(vector.kind);
    json value{{"irq", vector.irq},
               {"kind", kind.empty() ? json() : json(kind)},
               {"queue", or_null(vector.queue)},
               {"label", or_null(vector.label)},
               {"source", affinityd::planner::to_string(vector.source)},
               {"shared", vector.shared},
               {"clash", vector.clash}};
    if (vector.tx_queue) value["tx_queue"] = *vector.tx_queue;
    if (const auto* line = machine.table.find(vector.irq)) add_line(value, machine, *line);
    return value;
}

json to_json(const Nic& nic, const MachineIrqs& machine, bool live) {
    auto queues = json::array();
    for (const auto& queue : nic.queues)
        queues.push_back(to_json(queue, live));
    auto vectors = json::array();
    for (const auto& vector : affinityd::planner::nic_vectors(nic, machine.table))
        vectors.push_back(to_json(vector, machine));
    auto bottom = json::array();
    if (!nic.lower.empty())
        for (const auto* lower : affinityd::planner::bottom_nics(nic, machine.nics))
            bottom.push_back(lower->name);
    return {{"name", nic.name},
            {"ifindex", nic.ifindex},
            {"driver", or_null(nic.driver)},
            {"device", or_null(nic.device)},
            {"pci", or_null(nic.pci)},
            {"virtio", or_null(nic.virtio)},
            {"mac", or_null(nic.mac)},
            {"up", nic.up},
            {"operstate", or_null(nic.operstate)},
            {"node", or_null(nic.node)},
            {"local_cpus", nic.local_cpus.empty() ? json() : json(nic.local_cpus.to_list())},
            {"addresses", nic.addresses},
            {"lower", nic.lower},
            {"bottom", std::move(bottom)},
            {"threaded_napi", nic.threaded_napi},
            {"channels", to_json(nic.channels)},
            {"queues", std::move(queues)},
            {"vectors", std::move(vectors)}};
}

std::string joined(const json& list) {
    std::string text;
    for (const auto& item : list)
        text += (text.empty() ? "" : " ") + item.get<std::string>();
    return text;
}

/// What the queue of a vector does with packets behind the interrupt: RPS of the rx queue, XPS of the tx
/// queue.
std::string steering_of(const json& nic, const json& vector) {
    std::string text;
    const auto add = [&](const char* direction, const char* name, const json& index) {
        if (!index.is_number()) return;
        for (const auto& queue : nic["queues"])
            if (queue["direction"] == direction && queue["index"] == index && queue["steering"].is_string() &&
                queue["steering"] != "")
                text += fmt::format("{}{}={}", text.empty() ? "" : " ", name,
                                    queue["steering"].get<std::string>());
    };
    const auto kind = cell(vector["kind"]);
    if (kind == "rx" || kind == "txrx") add("rx", "rps", vector["queue"]);
    if (kind == "tx") add("tx", "xps", vector["queue"]);
    if (kind == "txrx") add("tx", "xps", vector.contains("tx_queue") ? vector["tx_queue"] : vector["queue"]);
    return text.empty() ? "-" : text;
}

void print_queues_without_irq(const json& nic, const Globals& globals) {
    Table table({"QUEUE", "NAPI", "THREAD", "THREAD'S CPUS", "STEERING", "WANTED", "TASKS", "ERROR"});
    for (const auto& queue : nic["queues"])
        table.add(
            {fmt::format("{}-{}", queue["direction"].get<std::string>(), queue["index"].get<unsigned>()),
             cell(queue["napi_id"]), cell(queue["napi_thread"]), cell(queue["napi_thread_cpus"]),
             cell(queue["steering"]), cell(queue.value("wanted", json())),
             printable(tasks_text(queue.value("tasks", json::array()))),
             printable(cell(queue.value("error", json())))});
    if (!table.empty()) fmt::print("{}", table.to_string(globals.color));
}

void print_nic(const json& nic, const Globals& globals) {
    const auto bold = [&](const std::string& text) {
        return globals.color ? "\033[1m" + text + "\033[0m" : text;
    };
    fmt::print("{}  driver {}  {}  node {}  near CPUs {}{}\n",
               bold(printable(nic["name"].get<std::string>())), printable(cell(nic["driver"])),
               nic["up"].get<bool>() ? printable(cell(nic["operstate"])) : "down",
               nic["node"].is_null() ? "unknown" : cell(nic["node"]),
               nic["local_cpus"].is_null() ? "unknown" : cell(nic["local_cpus"]),
               nic["pci"].is_null() ? "" : "  pci " + printable(cell(nic["pci"])));
    if (!nic["addresses"].empty()) fmt::print("  addresses {}\n", printable(joined(nic["addresses"])));
    if (!nic["lower"].empty())
        fmt::print("  on top of {}; the work is done by {}\n", printable(joined(nic["lower"])),
                   nic["bottom"].empty() ? "interfaces that are not visible here"
                                         : printable(joined(nic["bottom"])));
    if (nic["vectors"].empty()) {
        print_queues_without_irq(nic, globals);
        return;
    }
    Table table({"IRQ", "KIND", "QUEUE", "SOURCE", "WANTED", "REQUESTED", "EFFECTIVE", "HINT", "STEERING",
                 "RATE", "LABEL", "TASKS", "ERROR"});
    for (const auto& vector : nic["vectors"]) {
        const bool listed = vector.contains("requested");
        table.add(
            {cell(vector["irq"]), vector["kind"].is_null() ? "data?" : cell(vector["kind"]),
             cell(vector["queue"]), cell(vector["source"]), cell(vector.value("wanted", json())),
             listed ? cell(vector["requested"]) + (vector["writable"].get<bool>() ? "" : " (managed)") : "-",
             listed ? cell(vector["effective"]) : "-", listed ? cell(vector["hint"]) : "-",
             steering_of(nic, vector),
             listed && vector["rate"].is_object() ? busiest(vector["rate"], 3, "/s") : "-",
             cell(vector["label"]), printable(tasks_text(vector.value("tasks", json::array()))),
             printable(cell(vector.value("error", json())))});
    }
    fmt::print("{}", table.to_string(globals.color));
}

} // namespace

void add_nics(CLI::App& app, Globals& globals, int& status) {
    auto* verb =
        app.add_subcommand("nics", "the network interfaces: queues, the interrupt of each, where it goes");
    struct Options {
        std::vector<std::string> names;
        double interval = 0;
    };
    auto options = std::make_shared<Options>();
    verb->add_option("name", options->names, "only these interfaces");
    verb->add_option("--interval", options->interval, "seconds to watch, for rates")
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
        auto list = json::array();
        for (const auto& nic : machine->nics)
            if (options->names.empty() || std::ranges::find(options->names, nic.name) != options->names.end())
                list.push_back(to_json(nic, *machine, globals.root == "/"));
        for (const auto& name : options->names) {
            if (std::ranges::find(machine->nics, name, &Nic::name) != machine->nics.end()) continue;
            fmt::print(stderr, "affinityctl: there is no interface {}\n", printable(name));
            status = exit_failure;
        }
        // What the daemon knows of them, if one answers.
        if (globals.root == "/")
            if (const auto answer = call_daemon(globals, "GetStatus"))
                merge_status(list, json::parse(*answer, nullptr, false));
        if (globals.json) {
            fmt::print("{}\n", list.dump(2, ' ', false, json::error_handler_t::replace));
            return;
        }
        for (std::size_t at = 0; at < list.size(); ++at) {
            if (at > 0) fmt::print("\n");
            print_nic(list[at], globals);
        }
    });
}

} // namespace affinityctl
