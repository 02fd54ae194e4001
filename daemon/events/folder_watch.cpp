// SPDX-License-Identifier: Apache-2.0
#include "events/folder_watch.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <sys/inotify.h>

namespace affinityd::events {

namespace {

constexpr std::uint32_t self_gone = IN_DELETE_SELF | IN_MOVE_SELF;

} // namespace

std::unique_ptr<FolderWatch> FolderWatch::start(sd_event* event, const std::vector<std::string>& folders,
                                                Changed changed, std::chrono::milliseconds quiet) {
    auto watch = std::make_unique<FolderWatch>(event, folders, std::move(changed), quiet);
    sd_event_source* source = nullptr;
    if (sd_event_add_time(event, &source, CLOCK_MONOTONIC, 0, 0, on_quiet, watch.get()) < 0) return nullptr;
    watch->quiet_timer_.reset(source);
    sd_event_source_set_enabled(source, SD_EVENT_OFF);
    watch->watch_all();
    return watch;
}

void FolderWatch::watch_all() {
    watches_.clear();
    awaited_.clear();
    constexpr unsigned most_tries = 4; // one that comes while we look is looked at again
    for (const auto& folder : folders_)
        for (unsigned i = 0; i < most_tries && !watch_folder(folder) && await_folder(folder); ++i) {
        }
}

bool FolderWatch::watch_folder(const std::string& folder) {
    constexpr std::uint32_t mask =
        IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | self_gone | IN_ONLYDIR;
    sd_event_source* source = nullptr;
    if (sd_event_add_inotify(event_, &source, folder.c_str(), mask, on_event, this) < 0) return false;
    watches_.emplace_back(source);
    return true;
}

bool FolderWatch::await_folder(const std::string& folder) {
    constexpr std::uint32_t mask = IN_CREATE | IN_MOVED_TO | self_gone | IN_ONLYDIR;
    std::filesystem::path missing = std::filesystem::path(folder).lexically_normal();
    if (!missing.has_filename()) missing = missing.parent_path();
    while (missing.has_relative_path()) {
        const auto parent = missing.has_parent_path() ? missing.parent_path() : std::filesystem::path(".");
        sd_event_source* source = nullptr;
        if (sd_event_add_inotify(event_, &source, parent.c_str(), mask, on_parent, this) >= 0) {
            watches_.emplace_back(source);
            awaited_.insert(missing.filename().string());
            std::error_code ignored;
            return std::filesystem::is_directory(missing, ignored);
        }
        missing = missing.parent_path();
    }
    return false;
}

void FolderWatch::changed_soon() {
    sd_event_source_set_time_relative(quiet_timer_.get(), usec_of(quiet_));
    sd_event_source_set_enabled(quiet_timer_.get(), SD_EVENT_ONESHOT);
}

/// Of that name there is a symbolic link, or a file that has another name, too.
bool FolderWatch::is_link(std::string_view name) const {
    return std::ranges::any_of(folders_, [name](const std::filesystem::path& folder) {
        std::error_code code;
        const auto path = folder / name;
        if (std::filesystem::is_symlink(std::filesystem::symlink_status(path, code))) return true;
        const auto names = std::filesystem::hard_link_count(path, code);
        return !code && names > 1;
    });
}

int FolderWatch::on_event(sd_event_source*, const inotify_event* event, void* userdata) {
    auto* watch = static_cast<FolderWatch*>(userdata);
    const std::string_view name(event->len > 0 ? event->name : "");
    if (!name.empty() && !name.ends_with(".yaml")) return 0; // an editor's files
    // Of a file it is told when it has been written. A link is there at once, and nothing else is told of it.
    if ((event->mask & IN_CREATE) != 0 && !watch->is_link(name)) return 0;
    if ((event->mask & self_gone) != 0)
        watch->watch_all();
    else if ((event->mask & IN_IGNORED) != 0)
        return 0;
    watch->changed_soon();
    return 0;
}

int FolderWatch::on_parent(sd_event_source*, const inotify_event* event, void* userdata) {
    auto* watch = static_cast<FolderWatch*>(userdata);
    const bool gone = (event->mask & self_gone) != 0;
    if (!gone && (event->len == 0 || !watch->awaited_.contains(std::string_view(event->name)))) return 0;
    watch->watch_all();
    if (!gone) watch->changed_soon(); // files may be in it already
    return 0;
}

int FolderWatch::on_quiet(sd_event_source*, std::uint64_t, void* userdata) {
    static_cast<FolderWatch*>(userdata)->changed_();
    return 0;
}

} // namespace affinityd::events
