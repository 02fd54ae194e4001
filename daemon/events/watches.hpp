// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/log.hpp"
#include "events/sources.hpp"
#include "netdev/link_monitor.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace affinityd::events {

/// Reports changes in the policy folders, once per burst, half a second after the last change: files are
/// written in several steps; two seconds after the first, at most. A missing folder is noticed when it is
/// made.
class FolderWatch {
  public:
    using Changed = std::function<void()>;
    FolderWatch(sd_event* event, std::vector<std::string> folders, Changed changed)
        : event_(event), folders_(std::move(folders)), quiet_(std::move(changed)) {}
    FolderWatch(const FolderWatch&) = delete;
    FolderWatch& operator=(const FolderWatch&) = delete;

    [[nodiscard]] Result<void> start();
    /// Watches every folder that exists, and for each missing one its nearest existing parent; anew, where a
    /// folder is another one by now.
    void watch_all();

  private:
    static int on_event(sd_event_source*, const inotify_event* event, void* userdata);
    static int on_parent(sd_event_source*, const inotify_event* event, void* userdata);
    [[nodiscard]] bool add(const std::string& folder, std::uint32_t mask, sd_event_inotify_handler_t handler);
    /// True if the folder appeared while its parent was being watched: look at it again.
    [[nodiscard]] bool await_folder(const std::string& folder);
    void changed_soon();

    sd_event* event_;
    std::vector<std::string> folders_;
    std::vector<Source> watches_;
    std::set<std::string, std::less<>> awaited_; ///< names whose creation may lead to a missing folder
    Timer::Clock::time_point first_change_;      ///< of those not told yet
    Timer quiet_;
};

/// Reports changes of the hardware: CPUs that go and come, links that are added, removed, renamed, go up or
/// down, come from or leave for another namespace, get other addresses or other channels. A subscription that
/// breaks is begun anew, and everything is reported as changed then.
class HardwareWatch {
  public:
    struct Changed {
        std::function<void()> cpus;
        /// By the interface's name; "": it may be any.
        std::function<void(const std::string& nic)> link;
    };
    HardwareWatch(sd_event* event, core::Log& log, Changed changed);
    HardwareWatch(const HardwareWatch&) = delete;
    HardwareWatch& operator=(const HardwareWatch&) = delete;

    /// Where it cannot, the log says so.
    void start();

  private:
    [[nodiscard]] Result<int> open();
    [[nodiscard]] Result<void> read();

    core::Log& log_;
    Changed changed_;
    std::optional<netdev::LinkMonitor> monitor_;
    Subscription subscription_; ///< of the monitor: ends before it
};

} // namespace affinityd::events
