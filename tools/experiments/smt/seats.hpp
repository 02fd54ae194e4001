// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "experiments/frame/nearness.hpp"
#include "experiments/frame/refusal.hpp"
#include "topology/topology.hpp"

#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace affinityd::experiments {

/// How a load runs.
enum class Company {
    alone,    ///< one thread
    cores,    ///< two threads on two cores
    siblings, ///< two threads on two hardware threads of one core
};
inline constexpr std::array companies{Company::alone, Company::cores, Company::siblings};
[[nodiscard]] std::string_view name_of(Company company); ///< "alone", "two cores", "one core"
[[nodiscard]] std::string_view key_of(Company company);  ///< "alone", "cores", "siblings": for JSON

/// Which CPUs they run on. What the machine cannot do has no pair, and a sentence why.
struct SmtSeats {
    unsigned alone = 0;
    std::optional<CpuPair> cores;    ///< one of them is `alone`
    std::optional<CpuPair> siblings; ///< one of them is `alone`
    std::string no_cores, no_siblings;
    /// Both CPUs; for `alone` that one twice. No value: the machine cannot do it.
    [[nodiscard]] std::optional<CpuPair> of(Company company) const;
};

/// Chooses from `cpus`: a core with two hardware threads if there is one, and a second core as near as can be
/// to it. An Error value: fewer than two CPUs.
[[nodiscard]] std::expected<SmtSeats, Refusal> smt_seats(const topology::Topology& topology,
                                                         const CpuSet& cpus);

} // namespace affinityd::experiments
