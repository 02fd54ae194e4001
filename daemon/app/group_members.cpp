// SPDX-License-Identifier: Apache-2.0
#include "app/group_members.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace affinityd::app {

namespace {

bool means_absent(int code) { return code == ENOENT || code == ENOTDIR || code == ENODEV; }

} // namespace

Result<bool> CgroupWalk::step(std::vector<int>& pids) {
    auto done = file_ ? read_part(pids) : open_next();
    if (!done) return std::unexpected(std::move(done.error()));
    return !file_ && left_.empty();
}

Result<void> CgroupWalk::open_next() {
    if (left_.empty()) return {};
    const auto [folder, depth] = left_.back();
    left_.pop_back();
    auto file = sys_->open_file(folder + "/cgroup.procs", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (!file && means_absent(file.error().code)) return {}; // gone, or one of the group's own files
    if (!file) return std::unexpected(std::move(file.error()));
    file_ = std::move(*file);
    if (depth == deepest_) return {};
    const auto names = sys_->list(folder);
    if (!names) return std::unexpected(names.error());
    for (const auto& name :
         *names) // groups, and the group's own files, which are told apart when they are opened
        left_.push_back({folder + "/" + name, depth + 1});
    return {};
}

Result<void> CgroupWalk::read_part(std::vector<int>& pids) {
    std::array<char, 4096> chunk{};
    ssize_t got = 0;
    do
        got = ::read(file_.get(), chunk.data(), chunk.size());
    while (got < 0 && errno == EINTR);
    // EOPNOTSUPP: a threaded group, whose processes its domain lists.
    if (got < 0 && errno != EOPNOTSUPP && !means_absent(errno))
        return fail("cannot read the processes of a control group", {}, errno);
    if (got <= 0) {
        take_line(pids);
        file_.reset();
        return {};
    }
    for (const char c : std::string_view(chunk.data(), static_cast<std::size_t>(got))) {
        if (c == '\n')
            take_line(pids);
        else if (line_.size() < 16)
            line_ += c;
    }
    return {};
}

void CgroupWalk::take_line(std::vector<int>& pids) {
    if (const auto pid = parse_number<int>(line_)) pids.push_back(*pid);
    line_.clear();
}

bool GroupMembers::read_next() {
    if (!walk_) {
        if (groups_.empty()) return true;
        walk_.emplace(sys_, "fs/cgroup" + groups_.back(), 0);
        groups_.pop_back();
    }
    const auto done = walk_->step(pids_);
    if (done && !*done) return false;
    if (!done) too_many_(); // it cannot be read: a pass goes by processes
    walk_.reset();
    return groups_.empty();
}

bool GroupMembers::step(const OutOfTime& out_of_time) {
    bool is_read = next_ > 0;
    while (!is_read) {
        is_read = read_next();
        if (pids_.size() > most) {
            too_many_();
            return true;
        }
        if (out_of_time() && !is_read) return false;
    }
    while (next_ < pids_.size()) {
        tasks_.process_moved(pids_[next_++]);
        if (out_of_time()) return next_ == pids_.size();
    }
    return true;
}

} // namespace affinityd::app
