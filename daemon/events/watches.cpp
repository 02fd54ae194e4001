// SPDX-License-Identifier: Apache-2.0
#include "events/watches.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <net/if.h>
#include <sys/inotify.h>

namespace affinityd::events {

namespace {

constexpr std::uint32_t self_gone = IN_DELETE_SELF | IN_MOVE_SELF;
/// After the last change, and after the first: files that are written all the time hold nothing else up.
constexpr std::chrono::milliseconds quiet_time{500}, longest_wait{2000};

bool is_watched_name(std::string_view name) {
    return !name.starts_with('.') && !name.starts_with('#') && name.ends_with(".yaml");
}

/// A file that is being written: inotify tells when that is done. inotify tells of a hard link only that it
/// was made, and the other name may be gone by now.
bool is_yet_empty(const std::filesystem::path& path) {
    std::error_code code;
    return std::filesystem::is_regular_file(std::filesystem::symlink_status(path, code)) &&
           std::filesystem::file_size(path, code) == 0 && std::filesystem::hard_link_count(path, code) == 1;
}

/// Messages about addresses have a number in place of the name. "": the interface has gone.
std::string name_of(const netdev::LinkEvent& event) {
    std::array<char, IF_NAMESIZE> name{};
    if (!event.name.empty() || ::if_indextoname(event.ifindex, name.data()) == nullptr) return event.name;
    return name.data();
}

} // namespace

Result<void> FolderWatch::start() {
    if (auto added = quiet_.add_to(event_); !added) return added;
    watch_all();
    return {};
}

void FolderWatch::watch_all() {
    constexpr std::uint32_t mask =
        IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | self_gone | IN_ONLYDIR;
    constexpr unsigned most_tries = 4; // one that comes while we look is looked at again
    watches_.clear();
    awaited_.clear();
    for (const auto& folder : folders_)
        for (unsigned i = 0; i < most_tries && !add(folder, mask, on_event) && await_folder(folder); ++i) {
        }
}

bool FolderWatch::add(const std::string& folder, std::uint32_t mask, sd_event_inotify_handler_t handler) {
    sd_event_source* source = nullptr;
    if (sd_event_add_inotify(event_, &source, folder.c_str(), mask, handler, this) < 0) return false;
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
        if (add(parent, mask, on_parent)) {
            awaited_.insert(missing.filename().string());
            std::error_code ignored;
            return std::filesystem::is_directory(missing, ignored);
        }
        missing = missing.parent_path();
    }
    return false;
}

void FolderWatch::changed_soon() {
    const auto now = Timer::Clock::now();
    if (!quiet_.is_armed()) first_change_ = now;
    quiet_.arm_at(std::min(now + quiet_time, first_change_ + longest_wait));
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

HardwareWatch::HardwareWatch(sd_event* event, core::Log& log, Changed changed)
    : log_(log), changed_(std::move(changed)), subscription_(event, log,
                                                             {.what = "changes of interfaces and CPUs",
                                                              .open = [this] { return open(); },
                                                              .read = [this] { return read(); },
                                                              .missed = [this] { changed_.cpus(); }}) {}

void HardwareWatch::start() {
    if (const auto done = subscription_.start(); !done)
        log_.warn("interfaces and CPUs that change are noticed by the periodic pass only: " +
                  done.error().to_string());
}

Result<int> HardwareWatch::open() {
    monitor_.reset();
    auto monitor = netdev::LinkMonitor::open();
    if (!monitor) return std::unexpected(monitor.error());
    monitor_ = std::move(*monitor);
    return monitor_->fd();
}

/// Only names are taken from the messages: the receiver reads the machine itself.
Result<void> HardwareWatch::read() {
    const auto drained = monitor_->drain();
    if (!drained) return std::unexpected(drained.error());
    if (drained->cpus) changed_.cpus();
    std::set<std::string> names;
    if (drained->lost) names.insert("");
    for (const auto& event : drained->events)
        names.insert(name_of(event));
    for (const auto& name : names)
        changed_.link(name);
    return {};
}

} // namespace affinityd::events
