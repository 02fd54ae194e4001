// SPDX-License-Identifier: Apache-2.0
#include "enforcer/queue_maps.hpp"

#include <utility>

namespace affinityd::enforcer {

namespace {

using machine::Direction;
using machine::FlowTable;
using machine::QueueCount;
using machine::Setting;
using machine::SteeringMask;
using machine::Subject;

constexpr unsigned most_queues = 4096;

bool is_set(const Setting& setting) { return !setting.cpus().empty() || setting.count().entries > 0; }

/// Drivers spread the CPUs over transmit queues anew: one whose map was emptied has to be emptied again.
/// Source: netif_set_xps_queue() in virtnet_set_affinity(), drivers/net/virtio_net.c.
bool is_set_by_drivers(const Subject& subject) {
    const auto* map = std::get_if<SteeringMask>(&subject);
    return map != nullptr && map->direction == Direction::tx;
}

/// Interrupts are the device's, whose interfaces share their reset.
bool is_of_another_port(const Subject& subject, unsigned port) {
    return std::visit(
        [&](const auto& what) {
            if constexpr (requires { what.port(); }) return what.port() != port;
            return false;
        },
        subject);
}

SteeringMask map_of(const QueueCount& count, Direction direction, unsigned queue) {
    return {count.device, direction, queue, count.nic, count.ifindex, count.is_port, count.folder};
}

} // namespace

/// False: there is no such queue.
Result<bool> QueueMaps::remember_one(const Subject& subject, const std::string& policy) {
    const auto present = enforcer_.present(subject);
    if (!present || !*present) return false;
    if (journal_.contains(subject) || (!is_set(**present) && !is_set_by_drivers(subject))) return true;
    if (auto done = journal_.put(subject, {**present, **present, **present, policy}); !done)
        return std::unexpected(std::move(done.error()));
    remembered_.push_back(subject);
    return true;
}

Result<void> QueueMaps::remember(const QueueCount& count, const std::string& policy) {
    for (const auto direction : {Direction::rx, Direction::tx})
        for (unsigned queue = 0; queue < most_queues; ++queue) {
            const auto is_there = remember_one(map_of(count, direction, queue), policy);
            if (!is_there) return std::unexpected(is_there.error());
            if (!*is_there) break;
            if (direction == Direction::tx) continue;
            const FlowTable flows{count.device, queue, count.nic, count.ifindex, count.is_port, count.folder};
            if (const auto done = remember_one(flows, policy); !done) return std::unexpected(done.error());
        }
    before_.clear();
    for (const auto& entry : journal_.queues(count.device))
        if (const auto present = enforcer_.present(entry.subject); present && *present)
            before_.insert_or_assign(entry.subject, **present);
    return {};
}

Result<void> QueueMaps::forget_unchanged() {
    for (const auto& subject : std::exchange(remembered_, {})) {
        const auto present = enforcer_.present(subject);
        const auto record = journal_.find(subject);
        if (!present || !*present || !record || **present != record->original) continue;
        if (auto done = journal_.forget(subject); !done) return done;
    }
    return {};
}

Result<bool> QueueMaps::follow_reset(const QueueCount& count, bool was_changed) {
    const auto before = std::exchange(before_, {});
    bool was_reset = false;
    for (auto& entry : journal_.queues(count.device)) {
        if (entry.subject == Subject(count) || is_of_another_port(entry.subject, count.port())) continue;
        const auto present = enforcer_.present(entry.subject);
        if (!present || !*present || **present == entry.record.granted) continue;
        const auto had = before.find(entry.subject);
        if (!was_changed && (had == before.end() || had->second == **present)) continue;
        entry.record.asked = entry.record.granted = **present;
        if (auto done = journal_.put(entry.subject, std::move(entry.record)); !done)
            return std::unexpected(std::move(done.error()));
        was_reset = true;
    }
    return was_reset;
}

} // namespace affinityd::enforcer
