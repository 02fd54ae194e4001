// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cgroup_walk.hpp"
#include "app/job.hpp"
#include "app/tasks.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::app {

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
