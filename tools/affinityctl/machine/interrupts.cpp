// SPDX-License-Identifier: Apache-2.0
// affinityctl irqs, affinityctl nics: the interrupt table and the purpose of each line; the network
// interfaces, their queues and the interrupt of each.
#include "affinityctl/verbs/verb.hpp"
#include "base/glob.hpp"
#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "irq/classify.hpp"
#include "irq/irq.hpp"
#include "machine/reader.hpp"
#include "machine/vectors.hpp"
#include "netdev/lower.hpp"
#include "netdev/nic.hpp"
#include "netdev/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

namespace {

using affinityd::irq::Irq;
using affinityd::irq::Line;
using affinityd::machine::Vector;
using affinityd::netdev::Direction;
using affinityd::netdev::Nic;
using nlohmann::json;
using std::chrono::milliseconds;

/// The interrupts and interfaces of a machine, read without the daemon.
struct MachineIrqs {
    affinityd::irq::InterruptTable table;
    std::vector<Nic> nics;
    std::optional<affinityd::irq::InterruptTable> before; ///< an earlier reading, for rates
    double seconds = 0;                                   ///< between the two
};

/// With an interval, other than 0, the table is read twice, that far apart, which only a live machine allows.
MachineIrqs read_machine_irqs(const std::string& folder, milliseconds interval) {
    const auto root = need(affinityd::host::Root::open(folder));
    if (interval.count() > 0 && !root.is_live())
        throw CallError{exit_failure, folder + ": a recorded machine has no rates"};
    MachineIrqs machine{{}, need(affinityd::netdev::read_nics(root)), {}, 0};
    using clock = std::chrono::steady_clock;
    const auto start = clock::now();
    if (interval.count() > 0) {
        machine.before = need(affinityd::machine::read_irqs(root));
        std::this_thread::sleep_for(interval);
    }
    machine.table = need(affinityd::machine::read_irqs(root));
    machine.seconds = std::chrono::duration<double>(clock::now() - start).count();
    return machine;
}

constexpr std::size_t most_shown = 3;

/// Interrupts of a line by CPU; `since`: those that came since another reading, per second.
json by_cpu(const MachineIrqs& machine, const Irq& line, const Irq* since) {
    auto values = json::object();
    for (std::size_t column = 0; column < line.counts.size() && column < machine.table.cpus.size();
         ++column) {
        const auto before = since == nullptr ? 0 : since->counts[column];
        if (line.counts[column] <= before) continue;
        const auto number = line.counts[column] - before;
        values[std::to_string(machine.table.cpus[column])] =
            since == nullptr ? json(number) : json(static_cast<double>(number) / machine.seconds);
    }
    return values;
}

json rates_of(const MachineIrqs& machine, const Irq& line) {
    const auto* earlier = machine.before ? machine.before->find(line.number) : nullptr;
    // A CPU that came or went between the readings shifts the columns: nothing can be compared.
    if (earlier == nullptr || machine.before->cpus != machine.table.cpus ||
        earlier->counts.size() != line.counts.size())
        return nullptr;
    return by_cpu(machine, line, earlier);
}

std::string busiest_of(const json& values, std::string_view unit) {
    std::vector<std::pair<double, std::string>> order;
    for (const auto& [cpu, value] : values.items())
        order.emplace_back(value.get<double>(), cpu);
    std::ranges::stable_sort(order, std::greater(), &std::pair<double, std::string>::first);
    std::string text;
    for (std::size_t at = 0; at < order.size() && at < most_shown; ++at)
        text += fmt::format("{}cpu{} {:.0f}{}", at == 0 ? "" : ", ", order[at].second, order[at].first, unit);
    if (order.size() > most_shown) text += ", ...";
    return text.empty() ? "-" : text;
}

/// "cpu3 1200/s, cpu0 2/s": the busiest CPUs of a line first; its rates if it has them, else its counts.
std::string busiest(const json& line) {
    return line["rate"].is_object() ? busiest_of(line["rate"], "/s") : busiest_of(line["counts"], "");
}

std::string shown_kind(const json& line) {
    const auto kind = line["kind"].is_null() ? "data?" : cell(line["kind"]);
    return kind == "none" ? "-" : kind;
}
std::string shown_queue(const json& queue) {
    return text_of(queue, "direction") + "-" + text_of(queue, "index");
}
std::string shown_steering(const json& row) { return text_of(row, "steering"); }

/// "nginx 812, nginx 813 and 2 more"
std::string shown_tasks(const json& row) {
    constexpr std::size_t shown = 3;
    const auto& tasks = list(row, "tasks");
    std::string all;
    for (std::size_t i = 0; i < std::min(tasks.size(), shown); ++i)
        all += fmt::format("{}{} {}", all.empty() ? "" : ", ", text_of(tasks[i], "comm"),
                           text_of(tasks[i], "tid"));
    if (tasks.size() > shown) all += fmt::format(" and {} more", tasks.size() - shown);
    return all.empty() ? "-" : all;
}

std::string shown_request(const json& line) {
    return text_of(line, "requested") + (line.value("writable", true) ? "" : " (managed)");
}
std::string shown_rate(const json& line) { return member(line, "rate").is_object() ? busiest(line) : "-"; }

// clang-format off
/// A line of the interrupt table.
constexpr Field line_fields[] = {
    {"chip", "", "text*", "its interrupt controller"},
    {"requested", "REQUESTED", "cpus?*", "smp_affinity", {}, shown_request},
    {"effective", "EFFECTIVE", "cpus?*", "effective_affinity"},
    {"hint", "HINT", "cpus?*", "affinity_hint"},
    {"writable", "", "flag*", "its CPUs can be changed; false: managed by the kernel"},
    {"count", "", "count*", "interrupts since boot"},
    {"counts", "COUNT", "count{}*", "the same by CPU", {}, busiest},
    {"rate", "RATE", "number{}?*", "per second, by CPU", {}, shown_rate},
};
constexpr Field vector_fields[] = {
    {"irq", "IRQ", "count", "its number"},
    {"kind", "KIND", "text?", "rx, tx, txrx, async or none; null: it may carry data", {}, shown_kind},
    {"queue", "QUEUE", "count?", "the queue that it serves"},
    {"label", "LABEL", "text?", "its handler"},
    {"source", "SOURCE", "text", "the source of this knowledge"},
    {"shared", "", "flag", "several handlers are on the line"},
    {"clash", "", "flag", "another vector claims the same queue"},
    {"tx_queue", "", "count*", "the queue that it sends for, where that is another one"},
    {"", "STEERING", "text", "", {}, shown_steering},
};
constexpr Field task_fields[] = {
    {"pid", "", "count", "the process"},
    {"tid", "", "count", "the thread"},
    {"comm", "", "text", "its name"},
};
/// With a daemon, of what a policy places.
constexpr Field placed_fields[] = {
    {"wanted", "WANTED", "text*", "the wish of the policy"},
    {"policy", "", "text*", "the policy"},
    {"why", "", "text*", "the reason"},
    {"shared_with", "", "text*", "other interfaces or devices on the line"},
    {"original", "", "text*", "the value before the first change"},
    {"error", "ERROR", "text*", "the reason why it is elsewhere"},
    {"tasks", "TASKS", "object[]*", "tasks of the policy on these CPUs", task_fields, shown_tasks},
};
constexpr Field own_queue_fields[] = {
    {"", "QUEUE", "text", "", {}, shown_queue},
    {"direction", "", "text", "rx or tx"},
    {"index", "", "count", "its number"},
    {"napi_id", "NAPI", "count?", "its NAPI instance"},
    {"napi_thread", "THREAD", "count?", "the thread that polls it"},
    {"napi_thread_cpus", "THREAD'S CPUS", "cpus?", "the CPUs of that thread"},
    {"irq", "", "count?", "its interrupt"},
    {"steering", "STEERING", "cpus?", "RPS of an rx queue, XPS of a tx queue"},
    {"flow_count", "", "count?", "its table of flows (RFS)"},
};
constexpr Field channel_fields[] = {
    {"rx", "", "count?", "queues that receive"},
    {"tx", "", "count?", "queues that send"},
    {"combined", "", "count?", "queues that do both"},
    {"other", "", "count?", "other channels"},
    {"max_rx", "", "count?", "the most that can be set"},
    {"max_tx", "", "count?", "the same"},
    {"max_combined", "", "count?", "the same"},
    {"max_other", "", "count?", "the same"},
};
// clang-format on

std::vector<Field> together(std::initializer_list<Fields> parts) {
    std::vector<Field> all;
    for (const auto part : parts)
        all.insert(all.end(), part.begin(), part.end());
    return all;
}

const std::vector<Field> all_vector_fields = together({vector_fields, placed_fields, line_fields}),
                         all_queue_fields = together({own_queue_fields, placed_fields});

// clang-format off
const Field nic_fields[] = {
    {"name", "", "text", "its name"},
    {"ifindex", "", "count", "its number"},
    {"driver", "", "text?", "its driver"},
    {"device", "", "text?", "its device in sysfs"},
    {"pci", "", "text?", "its PCI address"},
    {"virtio", "", "text?", "its virtio device"},
    {"mac", "", "text?", "its hardware address"},
    {"up", "", "flag", "it is up"},
    {"operstate", "", "text?", "its operational state"},
    {"node", "", "count?", "its NUMA node"},
    {"local_cpus", "", "cpus?", "CPUs near it"},
    {"addresses", "", "text[]", "its addresses"},
    {"lower", "", "text[]", "interfaces below it"},
    {"bottom", "", "text[]", "the lowest of these, which have the hardware"},
    {"threaded_napi", "", "flag", "threads poll its queues"},
    {"channels", "", "object?", "numbers of queues, as ethtool -l has them", channel_fields},
    {"queues", "", "object[]", "its queues", all_queue_fields},
    {"vectors", "", "object[]", "its interrupts", all_vector_fields},
};

const std::vector<Field> irq_fields = together({std::initializer_list<Field>{
    {"irq", "IRQ", "count", "its number"},
    {"device", "DEVICE", "text?", "its interface or device"},
    {"queue", "QUEUE", "count?", "the queue that it serves"},
    {"kind", "KIND", "text?", "rx, tx, txrx, async or none; null: it may carry data", {}, shown_kind},
    {"label", "LABEL", "text?", "its handler"},
    {"nic", "", "flag", "it is a network interface's"},
    {"driver", "", "text?", "the driver"},
    {"pci", "", "text?", "the PCI address"},
    {"virtio", "", "text?", "the virtio device"},
    {"platform", "", "text?", "the platform device"},
    {"shared", "", "flag", "several handlers are on the line"},
    {"source", "SOURCE", "text?", "the source of this knowledge"},
    {"rx_queue", "", "count*", "the queue that it receives for, where that is another one"},
    {"tx_queue", "", "count*", "the queue that it sends for"},
}, line_fields});
// clang-format on

json with_line(json value, const MachineIrqs& machine, const Irq& line) {
    std::uint64_t total = 0;
    for (const auto count : line.counts)
        total += count;
    value.update(
        record(line_fields, {line.chip, or_null(line.requested), or_null(line.effective), or_null(line.hint),
                             line.writable, total, by_cpu(machine, line, nullptr), rates_of(machine, line)}));
    return value;
}

json kind_or_null(affinityd::irq::Kind kind) {
    const auto name = affinityd::machine::to_string(kind);
    return name.empty() ? json() : json(name);
}

/// By interrupt, the interfaces that it belongs to by MSI list or netlink, each with its vector.
using Owners = std::multimap<unsigned, std::pair<const Nic*, Vector>>;

template <class T>
json or_missing(const std::optional<T>& value) {
    return value ? json(*value) : no_key;
}

json irq_json(const Line& line, const Owners& owners, const MachineIrqs& machine, const Irq& irq) {
    const auto& label = line.label;
    json device = or_null(label.device), queue = or_null(label.queue), kind = kind_or_null(label.kind);
    json source = label.is_nic ? json("label") : json();
    bool is_nic = label.is_nic;
    const auto [first, last] = owners.equal_range(line.irq);
    for (auto owner = first; owner != last; ++owner) {
        const auto& [nic, vector] = owner->second;
        if (vector.label != line.action || (!label.device.empty() && label.device != nic->name)) continue;
        source = affinityd::machine::to_string(vector.source);
        device = nic->name;
        kind = kind_or_null(vector.kind);
        if (!is_nic || vector.source == affinityd::machine::Source::netlink) queue = or_null(vector.queue);
        is_nic = true;
        break;
    }
    const auto own = Fields(irq_fields).first(irq_fields.size() - std::size(line_fields));
    return with_line(
        record(own, {line.irq, std::move(device), std::move(queue), std::move(kind), or_null(line.action),
                     is_nic, or_null(label.driver), or_null(label.pci), or_null(label.virtio),
                     or_null(label.platform), line.shared, std::move(source),
                     label.rx_queue != label.queue ? or_missing(label.rx_queue) : no_key,
                     or_missing(label.tx_queue)}),
        machine, irq);
}

/// An entry for each line and handler, a NIC's or (unless `nics_only`) any.
json irqs_json(const MachineIrqs& machine, bool nics_only) {
    std::vector<affinityd::irq::Device> devices;
    Owners owners;
    auto vectors = affinityd::machine::vectors_of_all(machine.nics, machine.table);
    for (std::size_t i = 0; i < machine.nics.size(); ++i) {
        const auto& nic = machine.nics[i];
        if (!nic.device.empty()) devices.push_back(affinityd::machine::to_device(nic));
        for (const auto& vector : vectors[i])
            owners.emplace(vector.irq, std::pair(&nic, vector));
    }
    auto entries = json::array();
    const auto lines = affinityd::irq::classify(machine.table, devices);
    auto line = lines.begin();
    for (const auto& irq : machine.table.irqs) {
        const auto add = [&](const Line& classified) {
            auto value = irq_json(classified, owners, machine, irq);
            if (!nics_only || value["nic"].get<bool>()) entries.push_back(std::move(value));
        };
        if (irq.actions.empty()) { // no driver has requested it, so classify() has no entry for it
            add(Line{irq.number, {}, {}, false});
            continue;
        }
        for (; line != lines.end() && line->irq == irq.number; ++line)
            add(*line);
    }
    return entries;
}

json queue_json(const affinityd::netdev::Queue& queue, bool live) {
    // Only on a live machine: a TID from a recording may be any other thread here.
    json thread_cpus;
    if (live && queue.napi_thread)
        if (const auto mask = affinityd::host::get_affinity(*queue.napi_thread))
            thread_cpus = mask->to_list();
    return record(own_queue_fields,
                  {queue.direction == Direction::rx ? "rx" : "tx", queue.index, or_null(queue.napi_id),
                   or_null(queue.napi_thread), std::move(thread_cpus), or_null(queue.irq),
                   or_null(queue.steering), or_null(queue.flow_count)});
}

json vector_json(const Vector& vector, const MachineIrqs& machine) {
    const auto* line = machine.table.find(vector.irq);
    auto value = record(vector_fields, {vector.irq, kind_or_null(vector.kind), or_null(vector.queue),
                                        or_null(vector.label), affinityd::machine::to_string(vector.source),
                                        vector.shared, vector.clash, or_missing(vector.tx_queue)});
    return line == nullptr ? value : with_line(std::move(value), machine, *line);
}

json nic_json(const Nic& nic, const MachineIrqs& machine, bool live) {
    json channels, queues = json::array(), vectors = json::array(), bottom = json::array();
    if (const auto& all = nic.channels)
        channels = record(channel_fields, {or_null(all->rx), or_null(all->tx), or_null(all->combined),
                                           or_null(all->other), or_null(all->max_rx), or_null(all->max_tx),
                                           or_null(all->max_combined), or_null(all->max_other)});
    for (const auto& queue : nic.queues)
        queues.push_back(queue_json(queue, live));
    for (const auto& vector : affinityd::machine::nic_vectors(nic, machine.table))
        vectors.push_back(vector_json(vector, machine));
    if (!nic.lower.empty())
        for (const auto* lower : affinityd::netdev::Stacks(machine.nics).under(nic))
            bottom.push_back(lower->name);
    return record(nic_fields,
                  {nic.name, nic.ifindex, or_null(nic.driver), or_null(nic.device), or_null(nic.pci),
                   or_null(nic.virtio), or_null(nic.mac), nic.up, or_null(nic.operstate), or_null(nic.node),
                   nic.local_cpus.empty() ? json() : json(nic.local_cpus.to_list()), nic.addresses, nic.lower,
                   std::move(bottom), nic.threaded_napi, std::move(channels), std::move(queues),
                   std::move(vectors)});
}

/// Packet steering of a vector's queues: RPS of the rx queue, XPS of the tx queue.
std::string steering_of(const json& nic, const json& vector) {
    std::vector<std::string> parts;
    const auto add = [&](std::string_view direction, const char* name, const json& index) {
        for (const auto& queue : nic["queues"])
            if (queue["direction"] == direction && queue["index"] == index &&
                text_of(queue, "steering") != "-")
                parts.push_back(name + text_of(queue, "steering"));
    };
    const auto kind = cell(vector["kind"]);
    if (kind == "rx" || kind == "txrx") add("rx", "rps=", vector["queue"]);
    if (kind == "tx" || kind == "txrx")
        add("tx", "xps=", vector.value(kind == "tx" ? "queue" : "tx_queue", vector["queue"]));
    return fmt::format("{}", fmt::join(parts, " "));
}

/// "combined 8 of 63"; "" where it is not known.
std::string channels_text(const json& nic) {
    const auto channels = nic.value("channels", json());
    if (!channels.is_object()) return {};
    std::string text;
    for (const std::string kind : {"combined", "rx", "tx"})
        if (channels.value(kind, json()).is_number() && channels[kind] != 0)
            text += fmt::format("{}{} {} of {}", text.empty() ? "" : ", ", kind, channels[kind].dump(),
                                cell(channels.value("max_" + kind, json())));
    return text;
}

/// The interface, then its vectors, or its queues where it has none.
void add_nic(const json& nic, Document& into) {
    const auto unknown = [&](const char* key) { return nic[key].is_null() ? "unknown" : cell(nic[key]); };
    auto& head = into.add(Document::Line{
        {{text_of(nic, "name"), Document::Look::bold},
         {fmt::format("  driver {}  {}  node {}  near CPUs {}{}", text_of(nic, "driver"),
                      nic["up"].get<bool>() ? text_of(nic, "operstate") : "down", unknown("node"),
                      unknown("local_cpus"), nic["pci"].is_null() ? "" : "  pci " + text_of(nic, "pci"))}}});
    head.gap = into.blocks.size() > 1;
    const auto line = [&](std::string text) { into.line(std::move(text), "  "); };
    if (!nic["addresses"].empty()) line("addresses " + joined(nic["addresses"], " "));
    if (const auto channels = channels_text(nic); !channels.empty()) line("queues " + channels);
    if (!nic["lower"].empty())
        line(fmt::format("on top of {}; the work is done by {}", joined(nic["lower"], " "),
                         nic["bottom"].empty() ? "no hardware that is visible here"
                                               : joined(nic["bottom"], " ")));
    if (nic["vectors"].empty()) {
        if (!nic["queues"].empty())
            into.add(Document::Table{.fields = all_queue_fields,
                                     .rows = nic["queues"],
                                     .columns = {"QUEUE", "NAPI", "THREAD", "THREAD'S CPUS", "STEERING",
                                                 "WANTED", "TASKS", "ERROR"},
                                     .folded = true});
        return;
    }
    Document::Table table{.fields = all_vector_fields,
                          .rows = nic["vectors"],
                          .columns = {"IRQ", "KIND", "QUEUE", "SOURCE", "WANTED", "REQUESTED", "EFFECTIVE",
                                      "HINT", "STEERING", "RATE", "LABEL", "TASKS", "ERROR"},
                          .folded = true};
    for (auto& vector : table.rows)
        vector["steering"] = steering_of(nic, vector);
    into.add(std::move(table));
}

/// Tasks of the queue's policy that use its interface and belong on its CPUs.
json tasks_on(const json& queue, const json& status) {
    auto tasks = json::array();
    for (const auto& process : list(status, "processes")) {
        const auto& nics = list(process, "nics");
        if (text(process, "policy") != text(queue, "policy") ||
            (!nics.empty() && std::ranges::find(nics, member(queue, "nic")) == nics.end()))
            continue;
        for (const auto& thread : list(process, "threads"))
            if (cpus(thread, "wanted").intersects(cpus(queue, "wanted")))
                tasks.push_back(record(
                    task_fields, {member(process, "pid"), member(thread, "tid"), text(thread, "comm")}));
    }
    return tasks;
}

/// Adds what the daemon reports about the vectors and queues of an interface.
void add_placed(json& nic, const json& status) {
    const auto vector_name = [](const json& part) {
        return fmt::format("IRQ {} ({})", text_of(part, "irq"), text(part, "label"));
    };
    for (const auto& queue : list(status, "queues")) {
        if (member(queue, "nic") != nic["name"]) continue;
        const bool is_irq = text(queue, "kind") == "irq";
        const auto subject = is_irq ? vector_name(queue) : text(nic, "name") + " " + text(queue, "queue");
        const auto note = text(queue, "note"), refusal = text(member(status, "refused"), subject.c_str());
        const auto kept = [&](const char* key) { return queue.contains(key) ? queue[key] : no_key; };
        for (auto& own : nic[is_irq ? "vectors" : "queues"])
            if (subject == (is_irq ? vector_name(own) : text(nic, "name") + " " + shown_queue(own)))
                own.update(
                    record(placed_fields, {text(queue, "wanted"), text(queue, "policy"),
                                           text(queue, "reason"), kept("shared_with"), kept("original"),
                                           !note.empty()     ? json(note)
                                           : refusal.empty() ? no_key
                                                             : json(refusal),
                                           tasks_on(queue, status)}));
    }
}

struct NicsOptions {
    std::vector<std::string> names;
    milliseconds interval{0};
    std::optional<json> status{}; ///< no value: the daemon is asked
};

Outcome run_nics(const NicsOptions& options, const Globals& globals) {
    const auto machine = read_machine_irqs(globals.root, options.interval);
    Document document;
    document.value = json::array();
    // A name may hold characters with a meaning in patterns.
    const auto is_meant = [](const std::string& asked, const Nic& nic) {
        return nic.is_called(
            [&](std::string_view name) { return asked == name || affinityd::glob_match(asked, name); });
    };
    for (const auto& nic : machine.nics)
        if (options.names.empty() ||
            std::ranges::any_of(options.names, [&](const auto& asked) { return is_meant(asked, nic); }))
            document.value.push_back(nic_json(nic, machine, !globals.is_recorded()));
    for (const auto& asked : options.names)
        if (std::ranges::none_of(machine.nics, [&](const Nic& nic) { return is_meant(asked, nic); })) {
            document.complaints.push_back("affinityctl: there is no interface " + asked);
            document.code = exit_failure;
        }
    const auto status = options.status
                            ? *options.status
                            : status_if_any(globals); // without a daemon they are shown all the same
    for (auto& nic : document.value) {
        add_placed(nic, status);
        add_nic(nic, document);
    }
    return document;
}

struct IrqsOptions {
    bool nics = false;
    milliseconds interval{0};
};

Outcome run_irqs(const IrqsOptions& options, const Globals& globals) {
    const auto machine = read_machine_irqs(globals.root, options.interval);
    if (machine.table.irqs.empty() && machine.table.special.empty())
        return failed(exit_failure, globals.root + ": there is no interrupt table");
    Document document;
    document.value = irqs_json(machine, options.nics);
    document.add(Document::Table{
        .fields = irq_fields,
        .rows = document.value,
        .columns = {"IRQ", "DEVICE", "QUEUE", "KIND", "SOURCE", "REQUESTED", "EFFECTIVE", "LABEL", "COUNT"},
        .folded = true});
    return document;
}

} // namespace

Outcome documents::nics(const Globals& globals, json status) {
    return run_nics({.names = {}, .status = std::move(status)}, globals);
}

std::string tasks_text(const json& row) { return shown_tasks(row); }

void add_nics(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] = add_verb(app,
                                          {.name = "nics",
                                           .summary = "network interfaces: queues, interrupts, where they go",
                                           .example = "affinityctl nics eth0 --interval 2s",
                                           .answer = nic_fields,
                                           .is_list = true},
                                          globals, status, run_nics);
    verb->add_option("name", options->names, "only these interfaces; a glob (in quotes) stands for several");
    add_time(*verb, "--interval", options->interval, milliseconds(50), "time to watch, for rates");
}

void add_irqs(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "irqs",
                  .summary = "interrupts: their NIC and queue, where they go, how often",
                  .example = "affinityctl irqs --nics",
                  .answer = irq_fields,
                  .is_list = true},
                 globals, status, run_irqs);
    verb->add_flag("--nics", options->nics, "only lines of network interfaces");
    add_time(*verb, "--interval", options->interval, milliseconds(50),
             "time to watch, for rates instead of counts since boot");
}

} // namespace affinityctl
