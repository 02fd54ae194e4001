// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/queues.hpp"

#include "affinityctl/daemon/members.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"

#include <utility>

namespace affinityctl {

using nlohmann::json;

namespace {

/// What names a queue: its interface and number, or else its interrupt.
std::pair<std::string, std::uint64_t> key_of(const json& part) {
    const auto nic = text(part, "nic");
    return part.contains("queue_number") ? std::pair(nic, count(part, "queue_number"))
                                         : std::pair(nic + " irq", count(part, "irq"));
}

} // namespace

std::map<std::string, QueueCount> queues_by_policy(const json& status) {
    std::map<std::string, std::map<std::pair<std::string, std::uint64_t>, bool>> in_place;
    for (const auto& part : list(status, "queues")) {
        const auto state = text(part, "state");
        const bool is_machine_table = text(part, "nic").empty() && text(part, "kind") != "irq";
        if (is_machine_table || state == "decided by another policy" || state == "released") continue;
        auto& queue = in_place[text(part, "policy")].try_emplace(key_of(part), true).first->second;
        queue = queue && state == "in place";
    }
    std::map<std::string, QueueCount> counts;
    for (const auto& [policy, queues] : in_place)
        for (const auto& [key, is_held] : queues) {
            ++counts[policy].wanted;
            counts[policy].held += is_held ? 1 : 0;
        }
    return counts;
}

using nlohmann::json;

std::string queue_why(const json& queue) {
    auto why = text_of(queue, queue.contains("note") ? "note" : "reason");
    if (queue.contains("shared_with"))
        why += " (shared with " + printable(text_of(queue, "shared_with")) + ")";
    return why;
}

std::string queue_name(const json& queue) {
    return text_of(queue, "kind") == "irq" ? "IRQ " + text_of(queue, "irq") + " " + text_of(queue, "label")
                                           : text_of(queue, "queue");
}

} // namespace affinityctl
