// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityd::app {

/// The processes in a control group and in those below it, `deepest` levels down, read in small parts: a
/// group may have many thousands. What comes or goes meanwhile may be missed. Source:
/// Documentation/admin-guide/cgroup-v2.rst, cgroup.procs.
class CgroupWalk {
  public:
    /// `folder` is relative to `sys`: "fs/cgroup/system.slice/nginx.service". `sys` must outlive the walk.
    CgroupWalk(const host::Dir& sys, std::string folder, unsigned deepest = 8)
        : sys_(&sys), deepest_(deepest), left_{{std::move(folder), 0}} {}

    /// Reads at most 4 KiB, or one list of groups, and appends the process ids found. True: that was all. A
    /// group that goes away meanwhile has no processes; one that cannot be read is an Error.
    [[nodiscard]] Result<bool> step(std::vector<int>& pids);

  private:
    struct Group {
        std::string folder;
        unsigned depth = 0; ///< below the first one
    };
    [[nodiscard]] Result<void> open_next();
    [[nodiscard]] Result<void> read_part(std::vector<int>& pids);
    void take_line(std::vector<int>& pids);

    const host::Dir* sys_;
    unsigned deepest_;
    std::vector<Group> left_; ///< groups that were not opened yet
    host::Fd file_;           ///< cgroup.procs of the one that is being read
    std::string line_;        ///< beginning of a line whose rest was not read yet
};

} // namespace affinityd::app
