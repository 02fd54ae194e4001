// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "events/sources.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace affinityd::events {

/// Tells when something changes in the policy folders, once per burst, a moment after the last change: files are written
/// in several steps. Folders that are not there yet are noticed when they come.
class FolderWatch {
  public:
    using Changed = std::function<void()>;
    static std::unique_ptr<FolderWatch> start(sd_event* event, const std::vector<std::string>& folders, Changed changed);
    explicit FolderWatch(Changed changed) : changed_(std::move(changed)) {}
    FolderWatch(const FolderWatch&) = delete;
    FolderWatch& operator=(const FolderWatch&) = delete;

  private:
    static int on_event(sd_event_source*, const inotify_event* event, void* userdata);
    static int on_quiet(sd_event_source*, std::uint64_t, void* userdata);

    Changed changed_;
    std::vector<Source> watches_;
    Source quiet_timer_;
};

} // namespace affinityd::events
