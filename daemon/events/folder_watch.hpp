// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "events/sources.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace affinityd::events {

/// Reports changes in the policy folders, once per burst, a moment after the last change: files are written
/// in several steps; two seconds after the first, at most. A missing folder is noticed when it is made.
class FolderWatch {
  public:
    using Changed = std::function<void()>;
    /// `quiet`: how long after the last change.
    static std::unique_ptr<FolderWatch>
    start(sd_event* event, const std::vector<std::string>& folders, Changed changed,
          std::chrono::milliseconds quiet = std::chrono::milliseconds(500));
    FolderWatch(sd_event* event, std::vector<std::string> folders, Changed changed,
                std::chrono::milliseconds quiet)
        : event_(event), folders_(std::move(folders)), changed_(std::move(changed)), quiet_(quiet) {}
    FolderWatch(const FolderWatch&) = delete;
    FolderWatch& operator=(const FolderWatch&) = delete;

    /// Watches every folder that exists, and for each missing one its nearest existing parent; anew, where a
    /// folder is another one by now.
    void watch_all();

  private:
    static int on_event(sd_event_source*, const inotify_event* event, void* userdata);
    static int on_parent(sd_event_source*, const inotify_event* event, void* userdata);
    static int on_quiet(sd_event_source*, std::uint64_t, void* userdata);

    [[nodiscard]] bool watch_folder(const std::string& folder);
    /// True if the folder appeared while its parent was being watched: look at it again.
    [[nodiscard]] bool await_folder(const std::string& folder);
    void changed_soon();

    sd_event* event_;
    std::vector<std::string> folders_;
    Changed changed_;
    std::chrono::milliseconds quiet_;
    std::vector<Source> watches_;
    std::set<std::string, std::less<>> awaited_; ///< names whose creation may lead to a missing folder
    Source quiet_timer_;
    std::optional<std::chrono::steady_clock::time_point> first_change_; ///< of those not told yet
};

} // namespace affinityd::events
