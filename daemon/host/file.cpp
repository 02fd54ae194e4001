// SPDX-License-Identifier: Apache-2.0
#include "host/file.hpp"

#include "host/ownership.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
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

Error laid_by_others(const std::string& path) {
    return {"somebody else has put this into a folder that is open to all: refused", path, EACCES};
}

/// Not only of a user namespace, in which all that is the machine's seems to be another's. The machine's own
/// has all users: user_namespaces(7).
bool is_root() {
    if (::geteuid() != 0) return false;
    const auto map = read_file("/proc/self/uid_map");
    return !map || !*map || (*map)->find(" 4294967295") != std::string::npos;
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
    // Its size as a first guess: it may grow meanwhile, and files of the kernel's own say 0.
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
    const std::string temporary = path + ".new";
    ::unlink(temporary.c_str()); // left by a process that was killed
    Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!file) return fail("cannot create", temporary, errno);
    int code = write_all(file.get(), text);
    if (code == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) code = errno;
    if (code == 0) return {};
    ::unlink(temporary.c_str());
    return fail("cannot write", path, code);
}

Result<void> check_replaceable(const std::string& path) {
    if (is_root())
        if (auto done = check_links(path); !done) return done;
    struct stat entry {};
    if (::lstat(path.c_str(), &entry) == 0) {
        if (!S_ISREG(entry.st_mode)) return fail("not a regular file: refused", path);
        if (is_laid_by_others(path, entry)) return std::unexpected(laid_by_others(path));
    } else if (errno != ENOENT) {
        return fail("cannot write", path, errno);
    }
    const auto temporary = path + ".new";
    if (::lstat(temporary.c_str(), &entry) == 0) return fail("is in the way: refused", temporary);
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

} // namespace affinityd::host
