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
/// After the first change: files that are written all the time hold nothing else up.
constexpr std::chrono::seconds longest_wait{2};

bool is_watched_name(std::string_view name) {
    return !name.starts_with('.') && !name.starts_with('#') && name.ends_with(".yaml");
}

/// A file that is being written: inotify tells when that is done. Of links it tells only that they were made,
/// and a hard link may have lost its other name by now.
bool is_yet_empty(const std::filesystem::path& path) {
    std::error_code code;
    return std::filesystem::is_regular_file(std::filesystem::symlink_status(path, code)) &&
           std::filesystem::file_size(path, code) == 0 && std::filesystem::hard_link_count(path, code) == 1;
}

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
    sd_event_source_set_description(source, folder.c_str()); // read by on_event()
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
    const auto now = std::chrono::steady_clock::now();
    if (!first_change_) first_change_ = now;
    const auto left = std::max<std::chrono::steady_clock::duration>(*first_change_ + longest_wait - now, {});
    const auto wait = std::min<std::chrono::steady_clock::duration>(quiet_, left);
    sd_event_source_set_time_relative(quiet_timer_.get(),
                                      usec_of(std::chrono::ceil<std::chrono::microseconds>(wait)));
    sd_event_source_set_enabled(quiet_timer_.get(), SD_EVENT_ONESHOT);
}

int FolderWatch::on_event(sd_event_source* source, const inotify_event* event, void* userdata) {
    auto* watch = static_cast<FolderWatch*>(userdata);
    const std::string_view name(event->len > 0 ? event->name : "");
    // An editor's files; but a link that others lead through is switched by a rename (..data of Kubernetes).
    if (!name.empty() && !is_watched_name(name) &&
        !(name.starts_with("..") && (event->mask & IN_MOVED_TO) != 0))
        return 0;
    const char* folder = nullptr;
    if ((event->mask & IN_CREATE) != 0 && sd_event_source_get_description(source, &folder) >= 0 &&
        is_yet_empty(std::filesystem::path(folder) / name))
        return 0;
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
    auto& watch = *static_cast<FolderWatch*>(userdata);
    watch.first_change_.reset();
    watch.changed_();
    return 0;
}

} // namespace affinityd::events
