// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/topology.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace affinityd::host {
class Dir;
}

namespace affinityd::topology {

/// Bytes of what the kernel prints as "32K", and old ones as "1024 KB"; 0 if it is not known.
[[nodiscard]] std::uint64_t cache_size(const std::optional<std::string>& text);

/// Collects the caches of a machine CPU by CPU, each once, from the folders cpuN/cache below `cpus`.
/// Most CPUs of a machine have caches of the same form (which index is which level and type), so after the
/// first one only the sets of sharing CPUs are read, unless something does not fit. Source:
/// Documentation/ABI/testing/sysfs-devices-system-cpu, "cache/index*".
class CacheReader {
  public:
    CacheReader(const host::Dir& cpus, const CpuSet& online, bool sizes)
        : cpus_(cpus), online_(online), sizes_(sizes) {}
    void read(unsigned cpu);
    /// By level, then type, then first CPU.
    [[nodiscard]] std::vector<Cache> take();

  private:
    struct Leaf {
        unsigned index = 0, level = 0;
        Cache::Type type = Cache::Type::unified;
    };
    bool read_like_last(const std::string& folder, unsigned cpu);
    void read_whole(const std::string& folder, unsigned cpu);
    [[nodiscard]] std::optional<CpuSet> sharing(const std::string& leaf_folder) const;
    [[nodiscard]] CpuSet& covered(const Leaf& leaf) { return covered_[{leaf.level, leaf.type}]; }
    void add(const Leaf& leaf, const std::string& leaf_folder, unsigned cpu, const CpuSet& sharing);

    const host::Dir& cpus_;
    const CpuSet& online_;
    bool sizes_;
    std::vector<Cache> caches_;
    std::map<std::pair<unsigned, Cache::Type>, CpuSet>
        covered_;             ///< CPUs whose cache of that level and type is known
    std::vector<Leaf> form_;  ///< of the last CPU read whole; empty if it has gaps
    unsigned last_index_ = 0; ///< highest index seen at any CPU
};

} // namespace affinityd::topology
