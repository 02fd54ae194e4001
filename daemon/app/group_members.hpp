// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/tasks.hpp"
#include "app/work.hpp"
#include "base/error.hpp"
#include "host/root.hpp"

#include <functional>
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

/// Looks at the processes of control groups that somebody has put processes into; which ones is not told. A
/// process may come under another policy that way, or into another cpuset.
class GroupMembers final : public Job {
  public:
    static constexpr std::size_t most = 1024; ///< processes that are looked at one by one
    /// `groups` are paths below the folder where control groups are mounted. References must outlive it;
    /// `too_many` is called where a pass is shorter.
    GroupMembers(const host::Dir& sys, Tasks& tasks, std::vector<std::string> groups,
                 std::function<void()> too_many)
        : sys_(sys), tasks_(tasks), groups_(std::move(groups)), too_many_(std::move(too_many)) {}
    bool step(const OutOfTime& out_of_time) override;

  private:
    /// True: all are read.
    bool read_next();
    const host::Dir& sys_;
    Tasks& tasks_;
    std::vector<std::string> groups_;
    std::function<void()> too_many_;
    std::optional<CgroupWalk> walk_; ///< of the group that is being read
    std::vector<int> pids_;
    std::size_t next_ = 0; ///< of these
};

} // namespace affinityd::app
