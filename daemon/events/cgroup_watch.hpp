// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "core/log.hpp"
#include "events/sources.hpp"
#include "host/fd.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace affinityd::events {

/// Watches the machine's control groups by inotify(7), for what no event of processes tells: that a cpuset
/// was written, which on kernels before 6.2 makes every mask in it as wide as the cpuset; and that a process
/// was put into another group. Each group has a watch, also one that comes later. Source:
/// Documentation/admin-guide/cgroup-v2.rst; cpuset(7) for version 1.
class CgroupWatch {
  public:
    static constexpr std::size_t longest_path = 1024; ///< groups nested deeper are left to the passes
    static constexpr int most_of_one_user = 1024;     ///< watched groups; not of root
    /// Groups are paths below the folder where they are mounted: "/system.slice/nginx.service", for version 1
    /// with the hierarchy: "/cpuset/docker".
    struct Listeners {
        std::function<void()> cpuset_written; ///< one that is followed
        std::function<void(std::vector<std::string> groups)> joined;
        std::function<void()> missed; ///< too much at once: processes may have moved anywhere
    };
    /// `base`: where control groups are mounted. References must outlive it.
    CgroupWatch(sd_event* event, core::Log& log, std::string base, Listeners listeners);
    CgroupWatch(const CgroupWatch&) = delete;
    CgroupWatch& operator=(const CgroupWatch&) = delete;

    /// Begins to watch all groups, in slices. Without control groups nothing is watched.
    [[nodiscard]] Result<void> start();
    /// Paths of the cpusets ("/system.slice/nginx.service") whose writes matter, instead of those so far;
    /// writes of their parents and of the root matter, too. `all`: the cpusets of all containers matter, too,
    /// and that these come and go.
    void follow(const std::vector<std::string>& cpusets, bool all = false);
    [[nodiscard]] std::size_t groups() const { return groups_.size(); } ///< that are watched
    /// Processes may have moved anywhere: a pass is asked for, but not one after the other, whatever users do
    /// with control groups.
    void leave_to_pass();

  private:
    struct Group {
        std::string path;
        uid_t owner = 0;
    };
    struct Unwatched {
        std::string path;
        bool is_new = false; ///< processes may be in it already
    };
    [[nodiscard]] Result<void> begin();
    void watch_later(Unwatched group);
    void watch_next();
    void watch_some();
    void read();
    void handle(int watch, std::uint32_t mask, std::string_view name);
    [[nodiscard]] bool has_room(uid_t owner) const;
    [[nodiscard]] bool is_followed(const std::string& path) const;
    void add(int watch, const std::string& path, uid_t owner);
    void drop(int watch);
    void note(const std::string& path);
    void tell();
    void leave_out(const std::string& why);

    sd_event* event_;
    core::Log& log_;
    std::string base_;
    Listeners listeners_;
    host::Fd inotify_;
    // The groups that are watched. Users to whom a part of the tree is delegated make groups as they like:
    // each has a share of the places.
    std::unordered_map<int, Group> groups_;        ///< by watch
    std::unordered_map<std::string, int> watches_; ///< by path
    std::vector<Unwatched> unwatched_;
    bool has_walked_ = false;                     ///< through all groups, once
    bool is_walk_ = false;                        ///< one is under way
    std::set<std::string, std::less<>> followed_; ///< paths of cpusets
    bool follows_all_ = false;                    ///< of containers
    std::set<std::string> joined_;                ///< groups that are to be told
    bool has_missed_ = false;                     ///< too much happened, which is to be told
    Timer::Clock::time_point told_{}, told_missed_{};
    Timer soon_{[this] { tell(); }};
    Deferred rest_{[this] { watch_some(); }}; ///< of groups that are to be watched
    Descriptor readable_{[this] { read(); }};
};

} // namespace affinityd::events
