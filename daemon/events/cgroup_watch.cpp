// SPDX-License-Identifier: Apache-2.0
#include "events/cgroup_watch.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include <dirent.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::events {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds watching_slice{1};  ///< of adding watches
constexpr milliseconds burst{100};         ///< who is put into a group seldom comes alone
constexpr milliseconds long_burst{500};    ///< the same while that goes on
constexpr std::chrono::seconds a_while{1}; ///< after which it does not
constexpr std::chrono::seconds between_passes{5};
constexpr std::size_t most_told = 64;     ///< groups at once
constexpr std::size_t most_joined = 4096; ///< groups that wait to be told

bool is_cpuset(std::string_view name) {
    // The second is written when cpusets are enabled below: then every process there is in one, with all of
    // its CPUs.
    return name == "cpuset.cpus" || name == "cgroup.subtree_control";
}

bool is_members(std::string_view name) {
    return name == "cgroup.procs" || name == "cgroup.threads" || name == "tasks";
}

/// Names of the folders in a folder; none if it has gone.
std::vector<std::string> folders_in(const std::string& path) {
    std::vector<std::string> names;
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(path.c_str()), ::closedir);
    while (const auto* entry = dir ? ::readdir(dir.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        if (entry->d_type == DT_DIR && name != "." && name != "..") names.emplace_back(name);
    }
    return names;
}

bool exists(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
}

} // namespace

CgroupWatch::CgroupWatch(sd_event* event, app::Log& log, std::string base, Listeners listeners)
    : event_(event), log_(log), base_(std::move(base)), listeners_(std::move(listeners)) {}

Result<void> CgroupWatch::start() {
    inotify_ = host::Fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (inotify_.get() < 0) return fail("control groups cannot be watched", {}, errno);
    if (auto added = soon_.add_to(event_); !added) return added;
    sd_event_source* source = nullptr;
    const int status = sd_event_add_io(event_, &source, inotify_.get(), EPOLLIN, on_readable, this);
    if (status < 0) return fail("control groups cannot be watched", {}, -status);
    readable_.reset(source);
    rest_.add_to(event_, SD_EVENT_PRIORITY_IDLE);
    follow({});
    watch_all();
    return {};
}

/// Those that are watched already are not watched twice.
void CgroupWatch::watch_all() {
    watched_.is_walk = true;
    if (exists(base_ + "/cgroup.controllers")) return watch_later({"", false});
    // Version 1: one hierarchy has the cpusets, another the groups of systemd.
    for (const char* hierarchy : {"/cpuset", "/unified", "/systemd"})
        if (exists(base_ + hierarchy + "/cgroup.procs")) watch_later({hierarchy, false});
}

void CgroupWatch::watch_later(Unwatched group) {
    unwatched_.push_back(std::move(group));
    rest_.arm();
}

void CgroupWatch::watch_next() {
    const auto [path, is_new] = std::move(unwatched_.back());
    unwatched_.pop_back();
    if (path.size() > longest_path) return;
    constexpr std::uint32_t mask = IN_MODIFY | IN_CREATE | IN_DELETE | IN_ONLYDIR;
    const auto folder = base_ + path;
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0) return; // gone
    const auto known = watched_.table.watch_of(path);
    if (!known && !watched_.table.has_room(status.st_uid)) return leave_out("there are too many");
    const int watch = ::inotify_add_watch(inotify_.get(), folder.c_str(), mask);
    if (watch < 0 && errno != ENOSPC && errno != ENOMEM) return; // gone, or not to be had
    if (watch < 0) return leave_out(std::generic_category().message(errno));
    if (known && *known != watch) forget(path); // another group than the one that had the name
    watched_.table.add(watch, path, status.st_uid);
    // Whoever was put into it before it was watched raised no event.
    if (is_new) note(path);
    for (const auto& name : folders_in(folder))
        unwatched_.push_back({path + "/" + name, is_new});
}

/// Groups may have come and gone. Those that are watched and not there any more make room first.
void CgroupWatch::handle_lost_events() {
    watched_.unsure = watched_.table.paths();
    watch_all();
    leave_to_pass();
}

void CgroupWatch::check_next() {
    const auto path = std::move(watched_.unsure.back());
    watched_.unsure.pop_back();
    if (!exists(base_ + path)) forget(path);
}

/// Control groups that are removed keep their watches: only that of the folder above tells.
void CgroupWatch::forget(const std::string& path) {
    const auto watch = watched_.table.erase(path);
    if (!watch) return;
    ::inotify_rm_watch(inotify_.get(), *watch);
    note_room();
}

/// Who was left out may be watched now; not at once, since groups that go seldom go alone.
void CgroupWatch::note_room() {
    if (watched_.has_left_out && !std::exchange(watched_.has_new_room, true)) leave_to_pass();
}

/// With it those below it, and no others.
void CgroupWatch::leave_out(const std::string& why) {
    watched_.has_left_out = true;
    log_.warn("not all control groups can be watched, a process that moves between the others is found by "
              "the next pass: " +
                  why,
              "control groups");
}

void CgroupWatch::follow(const std::vector<std::string>& cpusets) {
    const std::string hierarchy = exists(base_ + "/cgroup.controllers") ? "" : "/cpuset";
    followed_ = {hierarchy};
    for (const auto& cpuset : cpusets)
        for (auto end = cpuset.find('/', 1); cpuset.size() <= longest_path; end = cpuset.find('/', end + 1)) {
            followed_.insert(hierarchy + cpuset.substr(0, end));
            if (end == std::string::npos) break;
        }
}

void CgroupWatch::read() {
    alignas(inotify_event) std::array<char, 16384> buffer{};
    const auto got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got <= 0) return; // EAGAIN: nothing more
    const auto end = static_cast<std::size_t>(got);
    for (std::size_t at = 0; at + sizeof(inotify_event) <= end;) {
        inotify_event event{};
        std::memcpy(&event, &buffer.at(at), sizeof event);
        at += sizeof event;
        if (event.len > end - at) return; // the kernel writes whole events
        const std::string_view padded(buffer.data() + at, event.len);
        at += event.len;
        handle(event.wd, event.mask, padded.substr(0, padded.find('\0')));
    }
}

void CgroupWatch::handle(int watch, std::uint32_t mask, std::string_view name) {
    if ((mask & IN_Q_OVERFLOW) != 0) return handle_lost_events();
    const auto* known = watched_.table.path_of(watch);
    if (known == nullptr) return;
    const std::string path = *known;
    if ((mask & IN_IGNORED) != 0) {
        watched_.table.erase_watch(watch); // gone
        note_room();
    } else if ((mask & IN_ISDIR) != 0) {
        const auto inner = path + "/" + std::string(name);
        if ((mask & IN_CREATE) != 0) watch_later({inner, true});
        if ((mask & IN_DELETE) != 0) forget(inner);
    } else if ((mask & IN_MODIFY) != 0) {
        if (is_members(name)) note(path);
        if (is_cpuset(name) && followed_.contains(path)) listeners_.cpuset_written();
    }
}

void CgroupWatch::note(const std::string& path) {
    if (news_.joined.size() >= most_joined) return leave_to_pass();
    news_.joined.insert(path);
    if (!soon_.is_armed()) soon_.arm(steady_clock::now() - news_.told < a_while ? long_burst : burst);
}

void CgroupWatch::leave_to_pass() {
    news_.joined.clear();
    if (std::exchange(news_.has_missed, true) && soon_.is_armed()) return;
    const auto since = steady_clock::now() - news_.told_missed;
    const auto rest = std::chrono::duration_cast<milliseconds>(between_passes - since);
    soon_.arm(std::clamp<milliseconds>(rest, burst, between_passes));
}

void CgroupWatch::tell() {
    news_.told = steady_clock::now();
    if (std::exchange(news_.has_missed, false)) {
        news_.told_missed = news_.told;
        news_.joined.clear();
        if (std::exchange(watched_.has_new_room, false)) {
            watched_.has_left_out = false;
            watch_all();
        }
        return listeners_.missed();
    }
    // In turn: who writes into hundreds of groups all the time keeps nobody else waiting for long.
    std::vector<std::string> told;
    auto next = news_.joined.upper_bound(news_.told_last);
    while (told.size() < most_told && !news_.joined.empty()) {
        if (next == news_.joined.end()) next = news_.joined.begin();
        told.push_back(*next);
        next = news_.joined.erase(next);
    }
    if (told.empty()) return;
    news_.told_last = told.back();
    if (!news_.joined.empty()) soon_.arm(burst);
    listeners_.joined(std::move(told));
}

/// Who moved into a group before it was watched was not told.
void CgroupWatch::end_walk() {
    std::exchange(watched_.has_walked, true) ? leave_to_pass() : listeners_.missed();
}

int CgroupWatch::on_readable(sd_event_source*, int, std::uint32_t, void* userdata) {
    static_cast<CgroupWatch*>(userdata)->read();
    return 0;
}

void CgroupWatch::take_rest() {
    const auto end = steady_clock::now() + watching_slice;
    const auto is_done = [&] { return watched_.unsure.empty() && unwatched_.empty(); };
    while (!is_done() && steady_clock::now() < end)
        watched_.unsure.empty() ? watch_next() : check_next();
    if (!is_done())
        rest_.arm();
    else if (std::exchange(watched_.is_walk, false))
        end_walk();
}

} // namespace affinityd::events
