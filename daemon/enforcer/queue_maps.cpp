// SPDX-License-Identifier: Apache-2.0
#include "enforcer/queue_maps.hpp"

#include <algorithm>
#include <cerrno>
#include <unordered_set>
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

/// What the kernel gives a queue that is made anew.
Setting unset(const Subject& subject) {
    return std::holds_alternative<FlowTable>(subject) ? Setting(machine::FlowCount{}) : Setting(CpuSet{});
}

} // namespace

std::optional<QueueCount> count_of(const Subject& subject) {
    return std::visit(
        [](const auto& what) -> std::optional<QueueCount> {
            if constexpr (requires { what.queue; })
                if (!what.device.empty())
                    return QueueCount{what.device, what.nic, what.ifindex, what.is_port, what.folder};
            return std::nullopt;
        },
        subject);
}

/// False: there is no such queue.
Result<bool> QueueMaps::look_at(const Subject& subject) {
    auto present = enforcer_.present(subject);
    if (!present) return std::unexpected(std::move(present.error()));
    if (*present) seen_.emplace_back(subject, std::move(**present));
    return present->has_value();
}

Result<void> QueueMaps::look(const QueueCount& count) {
    seen_.clear();
    before_.clear();
    for (const auto direction : {Direction::rx, Direction::tx})
        for (unsigned queue = 0; queue < most_queues; ++queue) {
            const auto is_there = look_at(map_of(count, direction, queue));
            if (!is_there) return std::unexpected(is_there.error());
            if (!*is_there) break;
            if (direction == Direction::tx) continue;
            const FlowTable flows{count.device, queue, count.nic, count.ifindex, count.is_port, count.folder};
            if (const auto has_flows = look_at(flows); !has_flows) return std::unexpected(has_flows.error());
        }
    for (const auto& entry : journal_.queues(count.device)) {
        if (std::holds_alternative<QueueCount>(entry.subject)) continue;
        auto present = enforcer_.present(entry.subject);
        if (!present) return std::unexpected(std::move(present.error()));
        if (*present) before_.insert_or_assign(entry.subject, std::move(**present));
    }
    return {};
}

Result<void> QueueMaps::remember(const std::string& policy) {
    for (const auto& [subject, present] : std::exchange(seen_, {})) {
        if (journal_.contains(subject) || (!is_set(present) && !is_set_by_drivers(subject))) continue;
        if (auto done = journal_.put(subject, {present, present, present, policy}); !done) return done;
        remembered_.push_back(subject);
        before_.insert_or_assign(subject, present);
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

/// Also an interface that has gone elsewhere a moment ago has no queues here, but keeps what they are set to.
Result<bool> QueueMaps::has_queues(const QueueCount& count, const Changes& changes) const {
    if (std::ranges::none_of(changes, &Change::has_gone)) return true;
    const auto present = enforcer_.present(count);
    if (!present) return std::unexpected(present.error());
    return present->has_value();
}

Result<void> QueueMaps::follow(const Changes& changes) {
    for (const auto& change : changes) {
        auto record = change.entry.record;
        record.asked = record.granted = change.now;
        record.before.reset();
        if (auto done = journal_.put(change.entry.subject, std::move(record)); !done) return done;
    }
    return {};
}

Result<bool> QueueMaps::follow_reset(const QueueCount& count, bool was_changed) {
    const auto before = std::exchange(before_, {});
    Changes changes;
    Result<void> unknown;
    for (auto& entry : journal_.queues(count.device)) {
        if (entry.subject == Subject(count) || is_of_another_port(entry.subject, count.port())) continue;
        const auto present = enforcer_.present(entry.subject);
        if (!present) unknown = std::unexpected(present.error());
        const bool has_gone = was_changed && present && !*present && count_of(entry.subject);
        if (!present || (!*present && !has_gone)) continue;
        const auto now = has_gone ? unset(entry.subject) : **present;
        if (now == entry.record.granted && !(has_gone && now != entry.record.asked)) continue;
        const auto had = before.find(entry.subject);
        if (!was_changed && (had == before.end() || had->second == now)) continue;
        changes.push_back({std::move(entry), now, has_gone});
    }
    if (const auto is_here = has_queues(count, changes); !is_here)
        unknown = std::unexpected(is_here.error());
    else if (!*is_here)
        unknown = fail("the interface is gone", count.nic, ENODEV);
    else if (auto done = follow(changes); !done)
        return std::unexpected(std::move(done.error()));
    if (!unknown) return std::unexpected(std::move(unknown.error()));
    return std::ranges::any_of(changes, [](const auto& change) { return !change.has_gone; });
}

void QueueMaps::note_number(const QueueCount& count, const Setting& number) { numbers_[count] = number; }

Result<void> QueueMaps::follow_others(const QueueCount& count, const Setting& number, bool is_recent) {
    const auto* known = numbers_.find(count);
    const auto record = known == nullptr ? journal_.find(count) : std::nullopt;
    const bool was_changed = known != nullptr ? *known != number : record && record->granted != number;
    if (known != nullptr && !was_changed) return {};
    Changes changes;
    Result<void> unknown;
    for (auto& entry : journal_.queues(count.device)) {
        if (count_of(entry.subject) != count) continue;
        const auto present = enforcer_.present(entry.subject);
        if (!present) unknown = std::unexpected(present.error());
        if (!present) continue;
        const auto now = present->value_or(unset(entry.subject));
        const bool is_drivers = is_recent && is_set_by_drivers(entry.subject);
        const bool is_others = *present && (!was_changed || (is_set(now) && !is_drivers));
        if (is_others || (now == entry.record.granted && now == entry.record.asked)) continue;
        changes.push_back({std::move(entry), now, !present->has_value()});
    }
    const auto is_here = has_queues(count, changes);
    if (!is_here) return std::unexpected(is_here.error());
    if (!*is_here) return {};
    if (auto done = follow(changes); !done) return done;
    if (unknown) note_number(count, number);
    return unknown;
}

std::vector<QueueCount> counts_in(const state::Journal& journal, std::optional<std::string_view> device) {
    std::unordered_set<Subject> known;
    std::vector<QueueCount> counts;
    for (const auto& entry : journal.queues(device)) {
        const auto* own = std::get_if<QueueCount>(&entry.subject);
        const auto count = own != nullptr ? std::optional(*own) : count_of(entry.subject);
        if (count && known.insert(*count).second) counts.push_back(*count);
    }
    return counts;
}

} // namespace affinityd::enforcer
