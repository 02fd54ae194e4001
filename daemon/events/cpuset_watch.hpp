// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "events/sources.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace affinityd::events {

/// Reports writes to the cpusets of processes under policy: on kernels before 6.2 that
/// makes every mask in them as wide as the cpuset, on later ones it may narrow masks or leave room for wider
/// ones. Only inotify(7) on the files shows it. A process that moves to another control group raises no
/// event here; the periodic pass finds it. Source: Documentation/admin-guide/cgroup-v2.rst, Cpuset; cpuset(7)
/// for version 1.
class CpusetWatch {
  public:
    using Changed = std::function<void()>;
    /// `base`: where control groups are mounted. `changed` is called for each write.
    CpusetWatch(sd_event* event, std::string base, Changed changed);
    CpusetWatch(const CpusetWatch&) = delete;
    CpusetWatch& operator=(const CpusetWatch&) = delete;

    /// Paths of cpusets ("/system.slice/nginx.service") to watch, with all their parents, instead of those
    /// so far. At most 1,024 files are watched: kernels limit the number for a user.
    void follow(const std::vector<std::string>& cpusets);
    [[nodiscard]] std::size_t files() const { return watches_.size(); } ///< that are watched

  private:
    static int on_written(sd_event_source*, const inotify_event* event, void* userdata);
    void want(const std::string& folder, std::map<std::string, Source>& wanted);

    sd_event* event_;
    std::string base_;
    Changed changed_;
    std::map<std::string, Source> watches_; ///< by file
};

} // namespace affinityd::events
