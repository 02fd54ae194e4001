// SPDX-License-Identifier: Apache-2.0
#include "host/file.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace affinityd::host {

namespace {

int write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const auto written = ::write(fd, text.data(), text.size());
        if (written < 0) {
            if (errno == EINTR) continue;
            return errno;
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
}

std::filesystem::path folder_of(const std::string& path) {
    auto folder = std::filesystem::path(path).parent_path();
    return folder.empty() ? "." : folder;
}

/// True for a file that another user has put into a folder that is open to all, such as /tmp.
bool is_laid_by_others(const std::string& path, const struct stat& entry) {
    constexpr mode_t open_to_all = S_ISVTX | S_IWOTH;
    struct stat folder {};
    return ::stat(folder_of(path).c_str(), &folder) == 0 && (folder.st_mode & open_to_all) == open_to_all &&
           entry.st_uid != ::geteuid() && entry.st_uid != folder.st_uid;
}

} // namespace

Result<std::optional<std::string>> read_file(const std::string& path, std::size_t limit, Links links) {
    const int no_link = links == Links::refused ? O_NOFOLLOW : 0;
    // O_NONBLOCK: never wait for a FIFO's writer.
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | no_link));
    if (!file) {
        if (errno == ENOENT) return std::nullopt;
        if (errno == ELOOP && no_link != 0) return fail("it is a symbolic link: refused", path);
        return fail("cannot open", path, errno);
    }
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) return fail("cannot read", path, errno);
    if (!S_ISREG(status.st_mode)) return fail("not a regular file", path);
    if (static_cast<std::size_t>(status.st_size) > limit)
        return fail("larger than the " + std::to_string(limit) + " bytes that are accepted", path);
    // The size is a first guess: the file may grow meanwhile, and the kernel's own files say 0.
    std::string text(std::max<std::size_t>(static_cast<std::size_t>(status.st_size) + 1, 4096), '\0');
    std::size_t length = 0;
    for (;;) {
        if (length == text.size()) text.resize(std::min(text.size() * 2, limit + 1));
        const auto got = ::read(file.get(), text.data() + length, text.size() - length);
        if (got == 0) break;
        if (got < 0 && errno != EINTR) return fail("cannot read", path, errno);
        if (got > 0) length += static_cast<std::size_t>(got);
        if (length > limit) return fail("grew beyond the accepted size while it was read", path);
    }
    text.resize(length);
    return text;
}

Result<void> replace_file(const std::string& path, std::string_view text, unsigned mode) {
    std::uint64_t number = 0; // no file of the user's own has that name
    if (::getrandom(&number, sizeof number, 0) < 0) return fail("cannot create", path, errno);
    const auto temporary = path + "." + std::to_string(number);
    const Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!file) return fail("cannot create", temporary, errno);
    int code = write_all(file.get(), text);
    if (code == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) code = errno;
    if (code == 0) return {};
    ::unlink(temporary.c_str());
    return fail("cannot write", path, code);
}

Result<void> check_replaceable(const std::string& path) {
    struct stat entry {};
    if (::lstat(path.c_str(), &entry) == 0) {
        if (!S_ISREG(entry.st_mode)) return fail("not a regular file: refused", path);
        if (is_laid_by_others(path, entry))
            return fail("another user has put this into a folder that is open to all: refused", path, EACCES);
    } else if (errno != ENOENT) {
        return fail("cannot write", path, errno);
    }
    if (::faccessat(AT_FDCWD, folder_of(path).c_str(), W_OK | X_OK, AT_EACCESS) != 0)
        return fail("cannot write", path, errno);
    return {};
}

Result<void> make_directories(const std::string& path, unsigned mode) {
    std::error_code code;
    const bool existed = std::filesystem::is_directory(path, code);
    std::filesystem::create_directories(path, code);
    if (code) return fail("cannot create the directory", path, code.value());
    if (!existed && ::chmod(path.c_str(), mode) != 0)
        return fail("cannot set the mode of the directory", path, errno);
    return {};
}

Result<std::optional<Fd>> lock_file(const std::string& path) {
    Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) return fail("cannot open the lock", path, errno);
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return std::optional(std::move(file));
    if (errno == EWOULDBLOCK) return std::nullopt;
    return fail("cannot lock", path, errno);
}

namespace {

constexpr int most_links = 40; // as the kernel's own limit, path_resolution(7)

/// The fault of a component; "": none.
std::string fault_of(const struct stat& status, bool is_on_the_way) {
    if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3)) return {}; // the null device
    const auto own = ::geteuid();
    if (status.st_uid != 0 && status.st_uid != own)
        return "it belongs to user " + std::to_string(status.st_uid) + ", not to root" +
               (own == 0 ? "" : " or user " + std::to_string(own));
    if (S_ISLNK(status.st_mode) || (is_on_the_way && (status.st_mode & S_ISVTX) != 0)) return {};
    if ((status.st_mode & S_IWOTH) != 0) return "any user can write to it";
    if ((status.st_mode & S_IWGRP) != 0) return "its group can write to it";
    return {};
}

/// A path on the way from "/", one component after the other.
class Walk {
  public:
    explicit Walk(const std::string& path) : at_(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) { add(path); }

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
        if (const auto fault = fault_of(status, !todo_.empty()); !fault.empty()) return fail(fault, path);
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

    Fd at_;
    std::filesystem::path place_ = "/";
    std::deque<std::string> todo_;
    int links_ = 0;
};

} // namespace

Result<void> check_ownership(const std::string& path) {
    std::error_code code;
    const auto whole = std::filesystem::absolute(path, code);
    if (code) return fail("it has no absolute path", path, code.value());
    Walk walk(whole.string());
    while (true) {
        const auto done = walk.step();
        if (done && *done) return {};
        if (done) continue;
        Error fault = done.error();
        fault.message += fault.subject == path ? ": refused" : ": " + path + " is refused";
        return std::unexpected(std::move(fault));
    }
}

Result<void> check_entry(const std::string& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0)
        return errno == ENOENT ? Result<void>() : fail("its owner cannot be read", path, errno);
    if (S_ISLNK(status.st_mode)) return fail("it is a symbolic link", path);
    if (const auto fault = fault_of(status, false); !fault.empty()) return fail(fault, path);
    return {};
}

} // namespace affinityd::host
