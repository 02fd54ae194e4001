// SPDX-License-Identifier: Apache-2.0
#include "events/folder_watch.hpp"

#include <string_view>

#include <sys/inotify.h>

namespace affinityd::events {

namespace {

constexpr std::uint64_t quiet_usec = 500'000;

}

std::unique_ptr<FolderWatch> FolderWatch::start(sd_event* event, const std::vector<std::string>& folders, Changed changed) {
    auto watch = std::make_unique<FolderWatch>(std::move(changed));
    sd_event_source* source = nullptr;
    if (sd_event_add_time(event, &source, CLOCK_MONOTONIC, 0, 0, on_quiet, watch.get()) < 0) return nullptr;
    watch->quiet_timer_.reset(source);
    sd_event_source_set_enabled(source, SD_EVENT_OFF);
    constexpr std::uint32_t mask = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR;
    for (const auto& folder : folders)
        if (sd_event_add_inotify(event, &source, folder.c_str(), mask, on_event, watch.get()) >= 0)
            watch->watches_.emplace_back(source);
    return watch;
}

int FolderWatch::on_event(sd_event_source*, const inotify_event* event, void* userdata) {
    auto* watch = static_cast<FolderWatch*>(userdata);
    if (event->len > 0 && !std::string_view(event->name).ends_with(".yaml")) return 0; // an editor's files
    sd_event_source_set_time_relative(watch->quiet_timer_.get(), quiet_usec);
    sd_event_source_set_enabled(watch->quiet_timer_.get(), SD_EVENT_ONESHOT);
    return 0;
}

int FolderWatch::on_quiet(sd_event_source*, std::uint64_t, void* userdata) {
    static_cast<FolderWatch*>(userdata)->changed_();
    return 0;
}

} // namespace affinityd::events
