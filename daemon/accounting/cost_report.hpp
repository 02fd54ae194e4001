// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::accounting {

/// Below so many bytes a cost says nothing.
inline constexpr double least_bytes = 1e6;

/// CPU seconds per 10^9 bytes; no value below `least_bytes`.
[[nodiscard]] inline std::optional<double> per_gigabyte(double seconds, double bytes) {
    return bytes >= least_bytes ? std::optional(seconds / (bytes / 1e9)) : std::nullopt;
}

/// A finished period of a policy: what its traffic cost while one text of it was in force.
struct PastCost {
    std::int64_t ended_at = 0;   ///< seconds since 1970 (UTC)
    std::uint64_t text_hash = 0; ///< of the policy's text
    double bytes = 0;
    double cpu_seconds = 0;
    std::string model; ///< "none", "irq", "process", "full"
};

/// What one interface carried during a policy's period.
struct NicBytes {
    std::string nic;
    double bytes = 0;
    bool shared = false; ///< another policy's traffic uses the interface too: both are given all of its bytes
};

/// The present period of one policy.
struct PolicyCost {
    std::string policy;
    std::string model;
    double seconds = 0; ///< how long the period has lasted
    std::vector<NicBytes> nics;
    double bytes = 0;               ///< over all of them
    double cpu_seconds = 0;         ///< of the policy's processes
    double softirq_seconds = 0;     ///< estimate, see NicTraffic
    std::optional<PastCost> before; ///< the last period under another text
};

/// One entry for each policy that has interfaces, by name.
using CostReport = std::vector<PolicyCost>;

} // namespace affinityd::accounting
