// SPDX-License-Identifier: Apache-2.0
#include "host/root.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace affinityd::host {

namespace {

constexpr unsigned most_attempts = 1000;

int open_below(int base, const std::string& path, int flags, bool confined) {
    const char* name = path.empty() ? "." : path.c_str();
    if (!confined) return ::openat(base, name, flags | O_CLOEXEC);
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
    how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    // The kernel gives up on a path with ".." when anything on the machine is renamed meanwhile, and callers
    // are to try again: openat2(2), EAGAIN.
    int fd = -1;
    for (unsigned attempt = 0; fd < 0 && (attempt == 0 || (errno == EAGAIN && attempt < most_attempts));
         ++attempt)
        fd = static_cast<int>(::syscall(SYS_openat2, base, name, &how, sizeof how));
    return fd;
}

struct CloseDirectory {
    void operator()(DIR* stream) const { ::closedir(stream); }
};

/// Where an open descriptor leads, as the kernel names it.
std::optional<std::string> descriptor_path(int fd) {
    std::array<char, 4096> target{};
    const std::string self = "/proc/self/fd/" + std::to_string(fd);
    const auto length = ::readlink(self.c_str(), target.data(), target.size());
    if (length <= 0) return std::nullopt;
    return std::string(target.data(), static_cast<std::size_t>(length));
}

} // namespace

bool means_absent(int code) {
    // EINVAL: an attribute of a device that is just going, or one that has no value now.
    return code == ENOENT || code == ENOTDIR || code == ENODEV || code == ESRCH || code == ENXIO ||
           code == EINVAL;
}

std::expected<std::string, int> read_rest(const Fd& file, std::size_t limit) {
    std::string text;
    std::array<char, 16384> chunk; // NOLINT: filled by read
    while (text.size() < limit) {
        const auto got = ::read(file.get(), chunk.data(), std::min(chunk.size(), limit - text.size()));
        if (got == 0) break;
        if (got < 0 && errno != EINTR) return std::unexpected(errno);
        if (got > 0) text.append(chunk.data(), static_cast<std::size_t>(got));
    }
    return text;
}

Result<Dir> Dir::open(int base, const std::string& path, bool confined) {
    Fd fd(open_below(base, path, O_RDONLY | O_DIRECTORY, confined));
    if (!fd) return fail("cannot open the directory", path, errno);
    return Dir(std::move(fd), confined);
}

int Dir::open_at(const std::string& path, int flags) const {
    if (!fd_) {
        errno = ENOENT;
        return -1;
    }
    return open_below(fd_.get(), path, flags, confined_);
}

Result<Fd> Dir::open_file(const std::string& path, int flags) const {
    Fd fd(open_at(path, flags));
    if (!fd) return fail("cannot open", path, errno);
    return fd;
}

Result<std::optional<std::string>> Dir::read(const std::string& path, std::size_t limit) const {
    const Fd file(
        open_at(path, O_RDONLY | O_NONBLOCK)); // a recording may hold a FIFO: never wait for a writer
    if (!file) {
        if (means_absent(errno)) return std::nullopt;
        return fail("cannot open", path, errno);
    }
    auto text = read_rest(file, limit);
    if (text) return std::move(*text);
    if (means_absent(text.error())) return std::nullopt; // the device or task left between open and read
    return fail("cannot read", path, text.error());
}

std::optional<std::string> Dir::text(const std::string& path) const {
    auto raw = read(path, 1U << 20);
    if (!raw || !*raw) return std::nullopt;
    return std::string(trim_text(**raw));
}

std::optional<long long> Dir::number(const std::string& path) const {
    const auto value = text(path);
    return value ? parse_number<long long>(*value) : std::nullopt;
}

std::optional<CpuSet> Dir::cpu_list(const std::string& path) const {
    const auto value = text(path);
    if (!value) return std::nullopt;
    auto set = CpuSet::parse_list(*value);
    return set ? std::optional(std::move(*set)) : std::nullopt;
}

std::optional<CpuSet> Dir::cpu_mask(const std::string& path) const {
    const auto value = text(path);
    if (!value) return std::nullopt;
    auto set = CpuSet::parse_mask(*value);
    return set ? std::optional(std::move(*set)) : std::nullopt;
}

Result<std::vector<std::string>> Dir::list(const std::string& path) const {
    const int fd = open_at(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0) {
        if (means_absent(errno)) return std::vector<std::string>{};
        return fail("cannot open the directory", path, errno);
    }
    const std::unique_ptr<DIR, CloseDirectory> stream(::fdopendir(fd));
    if (!stream) {
        ::close(fd);
        return fail("cannot list the directory", path, ENOMEM);
    }
    std::vector<std::string> names;
    errno = 0; // the end and a fault are told apart by errno alone; readdir(3)
    while (const dirent* entry = ::readdir(stream.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
        errno = 0;
    }
    if (errno != 0 && !means_absent(errno)) return fail("cannot list the directory", path, errno);
    std::ranges::sort(names);
    return names;
}

bool Dir::exists(const std::string& path) const {
    if (fd_ && !confined_) return ::faccessat(fd_.get(), path.c_str(), F_OK, 0) == 0;
    return static_cast<bool>(Fd(open_at(path, O_PATH)));
}

std::optional<std::string> Dir::stamp(const std::string& path) const {
    const Fd fd(open_at(path, O_PATH));
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0) return std::nullopt;
    std::string text;
    for (const auto part :
         {static_cast<long long>(status.st_dev), static_cast<long long>(status.st_ino),
          static_cast<long long>(status.st_size), static_cast<long long>(status.st_ctim.tv_sec),
          static_cast<long long>(status.st_ctim.tv_nsec)})
        text += std::to_string(part) + ' ';
    return text;
}

std::optional<unsigned> Dir::owner(const std::string& path) const {
    struct stat status {};
    if (!confined_) {
        if (!fd_ || ::fstatat(fd_.get(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
            return std::nullopt;
        return status.st_uid;
    }
    const Fd fd(open_at(path, O_PATH | O_NOFOLLOW));
    if (!fd || ::fstat(fd.get(), &status) != 0) return std::nullopt;
    return status.st_uid;
}

std::optional<std::string> Dir::link(const std::string& path) const {
    const Fd fd(open_at(path, O_PATH | O_NOFOLLOW));
    if (!fd) return std::nullopt;
    std::array<char, 4096> target{};
    const auto length = ::readlinkat(fd.get(), "", target.data(), target.size());
    if (length <= 0) return std::nullopt;
    return std::string(target.data(), static_cast<std::size_t>(length));
}

std::optional<std::string> Dir::resolve(const std::string& path) const {
    const Fd fd(open_at(path, O_PATH));
    if (!fd) return std::nullopt;
    const auto base = descriptor_path(fd_.get());
    const auto full = descriptor_path(fd.get());
    if (!base || !full || !full->starts_with(*base + "/")) return std::nullopt;
    return full->substr(base->size() + 1);
}

int Dir::write(const std::string& path, std::string_view text) const {
    if (confined_) return EROFS;
    const Fd file(open_at(path, O_WRONLY));
    if (!file) return errno;
    const auto written = ::write(file.get(), text.data(), text.size());
    if (written < 0) return errno;
    return static_cast<std::size_t>(written) == text.size() ? 0 : EIO;
}

Result<Dir> Dir::dir(const std::string& path) const {
    Fd fd(open_at(path, O_RDONLY | O_DIRECTORY));
    if (!fd) return fail("cannot open the directory", path, errno);
    return Dir(std::move(fd), confined_);
}

Result<Root> Root::open(const std::string& path, const std::string& live_proc) {
    struct stat wanted {};
    struct stat live {};
    if (::stat(path.c_str(), &wanted) != 0) return fail("cannot open the root folder", path, errno);
    const bool is_live =
        ::stat("/", &live) == 0 && wanted.st_dev == live.st_dev && wanted.st_ino == live.st_ino;
    auto top = Dir::open(AT_FDCWD, path, false);
    if (!top) return std::unexpected(top.error());
    auto part = [&](const char* name) -> Result<Dir> {
        if (is_live && name == std::string_view("proc") && !live_proc.empty())
            return Dir::open(AT_FDCWD, live_proc, false);
        if (is_live) return Dir::open(AT_FDCWD, std::string("/") + name, false);
        auto found = Dir::open(top->fd(), name, true);
        if (!found && means_absent(found.error().code)) return Dir{}; // the recording has no such tree
        return found;
    };
    auto proc = part("proc");
    auto sys = part("sys");
    if (!proc) return std::unexpected(proc.error());
    if (!sys) return std::unexpected(sys.error());
    auto etc = part("etc");
    if (!etc && !means_absent(etc.error().code)) return std::unexpected(etc.error());
    auto run = part("run");
    return Root(path, is_live, std::move(*proc), std::move(*sys), etc ? std::move(*etc) : Dir{},
                run ? std::move(*run) : Dir{});
}

} // namespace affinityd::host
