// SPDX-License-Identifier: Apache-2.0
#include "events/cgroup_watch.hpp"

#include "machine/pods.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::events {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds watching_slice{1};  ///< of adding watches
constexpr milliseconds burst{100};         ///< processes that are put into a group seldom come alone
constexpr milliseconds long_burst{500};    ///< the same while that goes on
constexpr std::chrono::seconds a_while{1}; ///< after which it does not
constexpr std::chrono::seconds between_passes{5};
constexpr std::size_t most_joined = 4096;  ///< groups that wait to be told
constexpr std::size_t most_watched = 8192; ///< kernels limit the watches of a user

bool is_cpuset(std::string_view name) {
    // The second is written when cpusets are enabled below: then every process there is in one, with all of
    // its CPUs.
    return name == "cpuset.cpus" || name == "cpuset.cpus.partition" || name == "cgroup.subtree_control";
}

bool is_members(std::string_view name) {
    return name == "cgroup.procs" || name == "cgroup.threads" || name == "tasks";
}

bool is_there(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
}

} // namespace

CgroupWatch::CgroupWatch(sd_event* event, core::Log& log, std::string base, Listeners listeners)
    : event_(event), log_(log), base_(std::move(base)), listeners_(std::move(listeners)) {}

Result<void> CgroupWatch::start() {
    if (auto added = soon_.add_to(event_); !added) return added;
    rest_.add_to(event_, SD_EVENT_PRIORITY_IDLE);
    follow({});
    return begin();
}

/// All anew. An Error: the watches before stay.
Result<void> CgroupWatch::begin() {
    host::Fd inotify(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (!inotify) return fail("control groups cannot be watched", {}, errno);
    readable_.end();
    inotify_ = std::move(inotify);
    if (auto added = readable_.add_to(event_, inotify_.get(), "control groups"); !added) return added;
    groups_.clear();
    watches_.clear();
    unwatched_.clear();
    is_walk_ = true;
    if (is_there(base_ + "/cgroup.controllers"))
        watch_later({"", false});
    else // version 1: one hierarchy has the cpusets, another the groups of systemd
        for (const char* hierarchy : {"/cpuset", "/unified", "/systemd"})
            if (is_there(base_ + hierarchy + "/cgroup.procs")) watch_later({hierarchy, false});
    return {};
}

void CgroupWatch::watch_later(Unwatched group) {
    unwatched_.push_back(std::move(group));
    rest_.arm();
}

void CgroupWatch::watch_some() {
    const auto end = steady_clock::now() + watching_slice;
    while (!unwatched_.empty() && steady_clock::now() < end)
        watch_next();
    if (!unwatched_.empty()) return rest_.arm();
    // Moves into a group before it was watched were not told.
    if (std::exchange(is_walk_, false))
        std::exchange(has_walked_, true) ? leave_to_pass() : listeners_.missed();
}

void CgroupWatch::watch_next() {
    const auto [path, is_new] = std::move(unwatched_.back());
    unwatched_.pop_back();
    if (path.size() > longest_path) return;
    constexpr std::uint32_t mask = IN_MODIFY | IN_CREATE | IN_DELETE | IN_ONLYDIR;
    const auto folder = base_ + path;
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0) return; // gone
    if (!watches_.contains(path) && !has_room(status.st_uid)) return leave_out("there are too many");
    const int watch = ::inotify_add_watch(inotify_.get(), folder.c_str(), mask);
    if (watch < 0 && errno != ENOSPC && errno != ENOMEM) return; // gone, or not to be had
    if (watch < 0) return leave_out(std::generic_category().message(errno));
    add(watch, path, status.st_uid);
    // Processes that were put into it before it was watched raised no event.
    if (is_new) note(path);
    if (is_new && is_followed(path)) listeners_.cpuset_written();
    std::error_code ignored;
    for (std::filesystem::directory_iterator inner(folder, ignored), end; inner != end;
         inner.increment(ignored))
        if (inner->is_directory(ignored))
            unwatched_.push_back({path + "/" + inner->path().filename().string(), is_new});
}

/// With it those below it, and no others.
void CgroupWatch::leave_out(const std::string& why) {
    log_.warn("not all control groups can be watched, a process that moves between the others is found by "
              "the next pass: " +
                  why,
              "control groups");
}

bool CgroupWatch::has_room(uid_t owner) const {
    const auto is_own = [owner](const auto& group) { return group.second.owner == owner; };
    return groups_.size() < most_watched &&
           (owner == 0 || std::ranges::count_if(groups_, is_own) < most_of_one_user);
}

void CgroupWatch::add(int watch, const std::string& path, uid_t owner) {
    if (const auto before = watches_.find(path); before != watches_.end()) {
        if (before->second == watch) return;
        const int old = before->second;
        drop(old); // another group than the one that had the name
        ::inotify_rm_watch(inotify_.get(), old);
    }
    drop(watch);
    groups_.emplace(watch, Group{path, owner});
    watches_.emplace(path, watch);
}

void CgroupWatch::drop(int watch) {
    if (const auto group = groups_.extract(watch)) watches_.erase(group.mapped().path);
}

bool CgroupWatch::is_followed(const std::string& path) const {
    return followed_.contains(path) || (follows_all_ && machine::may_be_container(path));
}

void CgroupWatch::follow(const std::vector<std::string>& cpusets, bool all) {
    follows_all_ = all;
    const std::string hierarchy = is_there(base_ + "/cgroup.controllers") ? "" : "/cpuset";
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
    if ((mask & IN_Q_OVERFLOW) != 0) { // groups may have come and gone
        if (auto begun = begin(); !begun) log_.warn(begun.error().to_string(), "control groups");
        return leave_to_pass();
    }
    const auto known = groups_.find(watch);
    if (known == groups_.end()) return;
    const std::string path = known->second.path;
    const bool is_roots =
        known->second.owner == 0; // where a part of the tree is delegated, users write as they like
    if ((mask & IN_IGNORED) != 0) return drop(watch); // gone
    if ((mask & IN_ISDIR) != 0) {
        const auto inner = path + "/" + std::string(name);
        if ((mask & IN_CREATE) != 0) watch_later({inner, true});
        // A group that is removed keeps its watch: only that of the folder above tells.
        if (const auto gone = watches_.find(inner); (mask & IN_DELETE) != 0 && gone != watches_.end()) {
            ::inotify_rm_watch(inotify_.get(), gone->second);
            drop(gone->second);
        }
        if ((mask & IN_DELETE) != 0 && is_followed(inner)) listeners_.cpuset_written();
    } else if ((mask & IN_MODIFY) != 0) {
        if (is_members(name)) note(path);
        if (is_cpuset(name) && (is_followed(path) || (follows_all_ && is_roots))) listeners_.cpuset_written();
    }
}

void CgroupWatch::note(const std::string& path) {
    if (joined_.size() >= most_joined) return leave_to_pass();
    joined_.insert(path);
    if (!soon_.is_armed()) soon_.arm(steady_clock::now() - told_ < a_while ? long_burst : burst);
}

void CgroupWatch::leave_to_pass() {
    joined_.clear();
    if (std::exchange(has_missed_, true) && soon_.is_armed()) return;
    const auto since = steady_clock::now() - told_missed_;
    const auto rest = std::chrono::duration_cast<milliseconds>(between_passes - since);
    soon_.arm(std::clamp<milliseconds>(rest, burst, between_passes));
}

void CgroupWatch::tell() {
    told_ = steady_clock::now();
    const auto groups = std::exchange(joined_, {});
    if (!std::exchange(has_missed_, false))
        return listeners_.joined(std::vector<std::string>(groups.begin(), groups.end()));
    told_missed_ = told_;
    listeners_.missed();
}

} // namespace affinityd::events
