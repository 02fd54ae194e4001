// SPDX-License-Identifier: Apache-2.0
#include "host/ownership.hpp"

#include "base/text.hpp"
#include "host/fd.hpp"

#include <array>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace affinityd::host {

namespace {

constexpr int most_links = 40; // as the kernel's own limit, path_resolution(7)

/// What is wrong with a component; "": nothing is.
using Judge = std::string (*)(const struct stat& status, bool is_on_the_way);

std::string fault_of(const struct stat& status, bool is_on_the_way) {
    if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3)) return {}; // the null device
    const auto own = ::geteuid();
    if (status.st_uid != 0 && status.st_uid != own)
        return "it belongs to user " + std::to_string(status.st_uid) + ", not to root" +
               (own == 0 ? "" : " or user " + std::to_string(own));
    if (S_ISLNK(status.st_mode) || (is_on_the_way && (status.st_mode & S_ISVTX) != 0)) return {};
    if ((status.st_mode & S_IWOTH) != 0) return "everybody can write to it";
    if ((status.st_mode & S_IWGRP) != 0) return "its group can write to it";
    return {};
}

std::string fault_of_link(const struct stat& status, bool) {
    if (!S_ISLNK(status.st_mode) || status.st_uid == 0 || status.st_uid == ::geteuid()) return {};
    return "it is a link of user " + std::to_string(status.st_uid) + ", which is not followed";
}

/// A path on the way from "/", one component after the other.
class Walk {
  public:
    Walk(const std::string& path, Judge judge)
        : judge_(judge), at_(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) {
        add(path);
    }

    /// Goes on by one component. True: it is at the end, or at something that is not there.
    Result<bool> step() {
        if (todo_.empty()) return true;
        const auto name = std::move(todo_.front());
        todo_.pop_front();
        Fd next(::openat(at_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
        if (!next && (errno == ENOENT || errno == ENOTDIR)) return true;
        struct stat status {};
        const auto path = place_ / name;
        if (!next || ::fstat(next.get(), &status) != 0) return fail("its owner cannot be read", path, errno);
        if (const auto fault = judge_(status, !todo_.empty()); !fault.empty()) return fail(fault, path);
        if (S_ISLNK(status.st_mode)) return follow(next, path);
        place_ = path.lexically_normal();
        at_ = std::move(next);
        return todo_.empty();
    }

  private:
    void add(const std::string& path) {
        std::deque<std::string> names;
        for (const auto name : split(path, '/'))
            if (!name.empty() && name != ".") names.emplace_back(name);
        todo_.insert(todo_.begin(), names.begin(), names.end());
    }
    Result<bool> follow(const Fd& link, const std::filesystem::path& path) {
        std::array<char, 4096> target{};
        const auto length = ::readlinkat(link.get(), "", target.data(), target.size());
        if (length <= 0) return fail("the link cannot be read", path, errno);
        if (++links_ > most_links) return fail("it leads through too many links", path, ELOOP);
        const std::string text(target.data(), static_cast<std::size_t>(length));
        if (text.starts_with('/')) {
            at_.reset(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
            place_ = "/";
        }
        add(text);
        return todo_.empty();
    }

    Judge judge_;
    Fd at_;
    std::filesystem::path place_ = "/";
    std::deque<std::string> todo_;
    int links_ = 0;
};

Result<void> check_way(const std::string& path, Judge judge) {
    std::error_code code;
    const auto whole = std::filesystem::absolute(path, code);
    if (code) return fail("it has no absolute path", path, code.value());
    Walk walk(whole.string(), judge);
    while (true) {
        const auto done = walk.step();
        if (done && *done) return {};
        if (done) continue;
        Error fault = done.error();
        fault.message += fault.subject == path ? ": refused" : ": " + path + " is refused";
        return std::unexpected(std::move(fault));
    }
}

} // namespace

Result<void> check_ownership(const std::string& path) { return check_way(path, fault_of); }

Result<void> check_links(const std::string& path) { return check_way(path, fault_of_link); }

Result<void> check_entry(const std::string& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0)
        return errno == ENOENT ? Result<void>() : fail("its owner cannot be read", path, errno);
    if (S_ISLNK(status.st_mode)) return fail("it is a symbolic link", path);
    if (const auto fault = fault_of(status, false); !fault.empty()) return fail(fault, path);
    return {};
}

} // namespace affinityd::host
