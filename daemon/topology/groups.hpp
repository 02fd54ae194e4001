// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::host {
class Dir;
}

namespace affinityd::topology {

/// One level of a machine (packages, dies, cores, ...), read CPU by CPU in ascending order from the folders
/// cpuN/topology below `cpus`. A set is read at the first CPU of each group only: the kernel gives every
/// member of a group the same one. Source: Documentation/admin-guide/cputopology.rst.
class GroupReader {
  public:
    /// `files`: what the set is called, the newer name first; one that ends in "_list" is a list, else a
    /// mask.
    GroupReader(const host::Dir& cpus, const CpuSet& online, std::vector<std::string_view> files)
        : cpus_(cpus), online_(online), files_(std::move(files)) {}

    /// Place of the CPU's group; no value if the machine does not say. Cut to the online CPUs; no CPU is in
    /// two.
    std::optional<std::size_t> read(unsigned cpu);
    /// Place of the CPU's group if a member of it was read.
    [[nodiscard]] std::optional<std::size_t> find(unsigned cpu) const;
    /// A group of one, for a CPU without a group in `read`.
    std::size_t add_alone(unsigned cpu) { return add(CpuSet{cpu}); }
    [[nodiscard]] const CpuSet& operator[](std::size_t place) const { return groups_[place]; }
    /// All groups by first CPU.
    [[nodiscard]] std::vector<CpuSet> take();

  private:
    std::size_t add(CpuSet group);
    CpuSet siblings(const std::string& folder);

    const host::Dir& cpus_;
    const CpuSet& online_;
    std::vector<std::string_view> files_;
    std::vector<CpuSet> groups_;
    std::vector<std::optional<std::size_t>> place_of_; ///< by CPU
    CpuSet covered_;
    unsigned absent_ = 0;
};

/// A number at each CPU.
class IdReader {
  public:
    /// `file` is below cpuN/.
    IdReader(const host::Dir& cpus, std::string file) : cpus_(cpus), file_("/" + std::move(file)) {}
    /// No value: no such file, or a negative number, which is how the kernel says "not known".
    std::optional<int> read(unsigned cpu);

  private:
    const host::Dir& cpus_;
    std::string file_;
    unsigned absent_ = 0;
    bool present_ = false;
};

} // namespace affinityd::topology
