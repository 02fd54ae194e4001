// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/action.hpp"

#include <cstdint>
#include <string>

namespace affinityd::planner {

/// Receive flow steering (RFS) has numbers where other subjects have masks: the flows that a receive queue
/// remembers (rps_flow_cnt) and those that the machine does (rps_sock_flow_entries). Such a number stands in
/// an Action and in the journal as the set of its bits: {15} is 32768, the empty set 0, which is off. Source:
/// Documentation/networking/scaling.rst, RFS.
[[nodiscard]] SteeringMask queue_flows(std::string device, std::string nic,
                                       unsigned queue); ///< of receive queue `queue`
[[nodiscard]] SteeringMask machine_flows();
[[nodiscard]] bool is_machine_flows(const SteeringMask& subject);
/// True for both.
[[nodiscard]] bool is_flow_count(const Subject& subject);
/// "rx-0" of the subject for rx-0's flows; the queue as it is of other subjects.
[[nodiscard]] std::string queue_of(const SteeringMask& subject);

[[nodiscard]] CpuSet to_bits(std::uint32_t number);
[[nodiscard]] std::uint32_t from_bits(const CpuSet& bits); ///< bits above 31 are left out

/// A subject's mask as people read it: "0-3", or the number.
[[nodiscard]] std::string mask_text(const Subject& subject, const CpuSet& mask);

} // namespace affinityd::planner
