// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::machine {

/// The control group of a container or pod, or a partition, with its CPUs.
struct CpuGroup {
    std::string path;          ///< "/kubepods.slice/..."
    CpuSet cpus;               ///< online ones
    bool is_partition = false; ///< the kernel keeps all others off its CPUs
};

/// CPUs that a container, a pod or a partition has for itself alone: it is confined to them, and no other
/// container is that is confined, too. Of Kubernetes only guaranteed pods have some; the others share.
[[nodiscard]] CpuSet own_cpus(const std::vector<CpuGroup>& groups, const CpuSet& online);

/// True if the CPUs of this control group may count. Only root can have given it such a name.
[[nodiscard]] bool may_be_container(std::string_view path);

/// Reads those groups of all there are, in parts. Source: Documentation/admin-guide/cgroup-v2.rst, Cpuset;
/// cpuset(7) for version 1.
class CpuGroupReader {
  public:
    /// `root` must outlive it.
    explicit CpuGroupReader(const host::Root& root);
    /// Asks `out_of_time` after each group. True: take() has all.
    [[nodiscard]] bool step(const std::function<bool()>& out_of_time);
    [[nodiscard]] std::vector<CpuGroup> take() { return std::move(found_); }

  private:
    void look_at(const std::string& path);
    const host::Root* root_;
    std::string base_;
    std::vector<std::string> open_; ///< paths that are to be looked at
    std::vector<CpuGroup> found_;
    int left_ = 16384; ///< so many groups are looked at
};

/// The same at once.
[[nodiscard]] CpuSet read_own_cpus(const host::Root& root, const CpuSet& online);

} // namespace affinityd::machine
