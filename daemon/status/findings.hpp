// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/machine.hpp"
#include "planner/action.hpp"
#include "planner/placements.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::status {

/// note: worth knowing; settling: the next pass corrects it; attention: an administrator should act.
enum class Severity : std::uint8_t { note, settling, attention };

/// All that status, check and doctor find by themselves, in the order of the table. Problems of files and of
/// policies that cannot be carried out have the words of their readers.
// clang-format off
enum class Ailment : std::uint8_t {
    // threads and queues
    refused, read_only, fight, cpuset, drifted, not_in_place, vector, immovable,
    // the daemon
    throughput, claim, journal, silent, listeners_unread, listeners_many, events, unseen, not_permitted,
    way_lost, own_cpus, no_bpf, crowd_of_addresses, namespaces_left, namespace_trouble, no_room, no_unit,
    no_unified, no_fence, pods,
    // the machine
    irqbalance, sched_ext, tuned, isolated_cpus, irq_on_isolated, irq_on_container, service_on_container,
    isolated_container, queues_on_one_cpu, queues_on_one_node, queues_stacked, nic_far, few_queues,
    rps_left, xps_unset, reuseport_off, unknown_label, managed_irq, boot_words, two_nodes, far_memory,
    powersave, deep_idle, steal
};
// clang-format on

struct Finding {
    using Time = std::chrono::system_clock::time_point;
    planner::Problem problem; ///< its subject, sentence and mend
    std::string id;           ///< "file", "policy", "rights" ...: the same in all versions
    Severity severity = Severity::attention;
    Time since{};                ///< when it was first known; the epoch: that is not known
    std::string name{};          ///< its kind and policy, file or interface
    std::optional<Time> until{}; ///< it is acknowledged so long
    std::string comm{};          ///< of a thread, in parentheses in its texts: for root alone
};

/// `seen`: the values of {0}, {1} ... in the table. `policy`, `subject`: "" for none. `is_many`: subjects.
[[nodiscard]] Finding finding(Ailment kind, std::string policy, std::string subject,
                              const std::vector<std::string>& seen = {}, bool is_many = false);

/// The interface has a queue for each CPU, and passes packets on to other CPUs all the same, as no policy
/// asks; no value: it does not.
[[nodiscard]] std::optional<Finding>
find_rps_left(const machine::Machine& machine, const planner::Placements& placements, const netdev::Nic& nic);

/// A policy sets the map of this queue, and does not only keep it off CPUs.
[[nodiscard]] bool is_placed(const planner::Placements& placements, const netdev::Nic& nic,
                             const netdev::Queue& queue);

} // namespace affinityd::status
