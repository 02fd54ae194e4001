// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "base/error.hpp"
#include "events/group_table.hpp"
#include "events/sources.hpp"
#include "host/fd.hpp"

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityd::events {

/// Watches the machine's control groups by inotify(7), for what no event of processes tells: that a cpuset
/// was written, which on kernels before 6.2 makes every mask in it as wide as the cpuset; and that a process
/// was put into another group. One watch for each group; groups that come are watched too. Source:
/// Documentation/admin-guide/cgroup-v2.rst; cpuset(7) for version 1.
class CgroupWatch {
  public:
    static constexpr std::size_t longest_path = 1024; ///< groups nested deeper are left to the passes
    /// Groups are paths below the folder where they are mounted: "/system.slice/nginx.service", for version 1
    /// with the hierarchy: "/cpuset/docker".
    struct Listeners {
        std::function<void()> cpuset_written; ///< one that is followed
        std::function<void(std::vector<std::string> groups)> joined;
        std::function<void()> missed; ///< too much at once: processes may have moved anywhere
    };
    /// `base`: where control groups are mounted. References must outlive it.
    CgroupWatch(sd_event* event, app::Log& log, std::string base, Listeners listeners);
    CgroupWatch(const CgroupWatch&) = delete;
    CgroupWatch& operator=(const CgroupWatch&) = delete;

    /// Begins to watch all groups, in slices. Without control groups nothing is watched.
    [[nodiscard]] Result<void> start();
    /// Paths of the cpusets ("/system.slice/nginx.service") whose writes matter, and those of all their
    /// parents, instead of those so far. Those of the root always matter.
    void follow(const std::vector<std::string>& cpusets);
    [[nodiscard]] std::size_t groups() const { return watched_.table.size(); } ///< that are watched
    /// Processes may have moved anywhere: a pass is asked for, but not one after the other, whoever plays
    /// with control groups.
    void leave_to_pass();

  private:
    struct Watched {
        GroupTable table;
        std::vector<std::string> unsure; ///< paths that may be gone: events were lost
        bool is_walk = false;            ///< through all groups
        bool has_walked = false;         ///< through all once
        bool has_left_out = false;       ///< groups, for want of room
        bool has_new_room = false;       ///< since
    };
    struct Unwatched {
        std::string path;
        bool is_new = false; ///< processes may be in it already
    };
    /// What is to be told.
    struct News {
        std::set<std::string> joined;
        std::string told_last; ///< the next ones have their turn after it
        bool has_missed = false;
        std::chrono::steady_clock::time_point told{}, told_missed{};
    };
    static int on_readable(sd_event_source*, int, std::uint32_t, void* userdata);
    void take_rest();
    void watch_all();
    void watch_later(Unwatched group);
    void watch_next();
    void check_next();
    void handle_lost_events();
    void read();
    void handle(int watch, std::uint32_t mask, std::string_view name);
    void forget(const std::string& path);
    void note_room();
    void note(const std::string& path);
    void tell();
    void end_walk();
    void leave_out(const std::string& why);

    sd_event* event_;
    app::Log& log_;
    std::string base_;
    Listeners listeners_;
    host::Fd inotify_;
    Watched watched_;
    std::vector<Unwatched> unwatched_;
    std::set<std::string, std::less<>> followed_; ///< paths of cpusets
    News news_;
    Timer soon_{[this] { tell(); }};
    Deferred rest_{[this] { take_rest(); }}; ///< of groups that are to be watched or checked
    Source readable_;
};

} // namespace affinityd::events
