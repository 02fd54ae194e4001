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

SteeringMask map_of(const QueueCount& count, Direction direction, unsigned queue) {
    return {count.device, direction, queue, count.nic, count.ifindex, count.is_port, count.folder};
}

} // namespace

/// False: there is no such queue.
Result<bool> QueueMaps::remember_one(const Subject& subject, const std::string& policy) {
    const auto present = enforcer_.present(subject);
    if (!present || !*present) return false;
    if (!is_set(**present) || journal_.contains(subject)) return true;
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

} // namespace affinityd::enforcer
