// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/topology.hpp"

#include <array>
#include <cstddef>
#include <map>
#include <string_view>

namespace affinityd::locality {

/// How near two CPUs can be; each level holds the ones before it.
enum class NearLevel { cpu, core, llc, node };
inline constexpr std::array near_levels{NearLevel::cpu, NearLevel::core, NearLevel::llc, NearLevel::node};
/// "CPU", "core", "LLC group", "node"
[[nodiscard]] std::string_view name_of(NearLevel level);

/// Which CPUs are near each other. A CPU that the topology does not have (it went offline meanwhile) is near
/// itself only.
class Nearness {
  public:
    explicit Nearness(const topology::Topology& topology);
    /// The group of a CPU, as the lowest CPU in it.
    [[nodiscard]] unsigned group(NearLevel level, unsigned cpu) const;
    [[nodiscard]] bool is_same(NearLevel level, unsigned one, unsigned other) const {
        return group(level, one) == group(level, other);
    }

  private:
    std::array<std::map<unsigned, unsigned>, near_levels.size()> groups_; ///< CPU -> lowest CPU, by level
};

} // namespace affinityd::locality
