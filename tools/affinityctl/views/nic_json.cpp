// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/irq_counts.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/nic_table.hpp"
#include "host/scheduler.hpp"
#include "machine/vectors.hpp"
#include "netdev/lower.hpp"

namespace affinityctl {

using nlohmann::json;

namespace {

using affinityd::machine::Vector;
using affinityd::netdev::Direction;
using affinityd::netdev::Nic;
using affinityd::netdev::Queue;

json to_json(const Queue& queue, bool live) {
    // Only on a live machine: a TID from a recording may be any other thread here.
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
            {"steering", or_null(queue.steering)},
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
    const auto kind = affinityd::machine::to_string(vector.kind);
    json value{{"irq", vector.irq},
               {"kind", kind.empty() ? json() : json(kind)},
               {"queue", or_null(vector.queue)},
               {"label", or_null(vector.label)},
               {"source", affinityd::machine::to_string(vector.source)},
               {"shared", vector.shared},
               {"clash", vector.clash}};
    if (vector.tx_queue) value["tx_queue"] = *vector.tx_queue;
    if (const auto* line = machine.table.find(vector.irq)) add_line(value, machine, *line);
    return value;
}

} // namespace

json nic_json(const Nic& nic, const MachineIrqs& machine, bool live) {
    auto queues = json::array();
    for (const auto& queue : nic.queues)
        queues.push_back(to_json(queue, live));
    auto vectors = json::array();
    for (const auto& vector : affinityd::machine::nic_vectors(nic, machine.table))
        vectors.push_back(to_json(vector, machine));
    auto bottom = json::array();
    if (!nic.lower.empty())
        for (const auto* lower : affinityd::netdev::Stacks(machine.nics).under(nic))
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

} // namespace affinityctl
