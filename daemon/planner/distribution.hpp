// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace affinityd::planner {

/// What is distributed: one placement of one policy. The name survives re-plans and reloads.
struct DistributionId {
    enum class Kind : std::uint8_t {
        slots,     ///< the plain slots
        lanes,     ///< the lanes of an interface
        all_lanes, ///< the lanes of all interfaces of the policy
        groups,    ///< whole processes over the groups that they stay in
        in_group,  ///< the slots inside a group
        whole,     ///< all CPUs of the policy, for processes that still settle: nothing is distributed
    };
    std::string policy;
    unsigned rule = 0; ///< 0: the policy's own placement; i + 1: its thread rule i
    std::string among; ///< of lanes: the interface; in a group: its first CPU; else ""
    Kind kind = Kind::slots;
    friend auto operator<=>(const DistributionId&, const DistributionId&) = default;
};

} // namespace affinityd::planner
