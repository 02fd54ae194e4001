// SPDX-License-Identifier: Apache-2.0
#include "coexist/trusted_folder.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::coexist {

namespace {

constexpr std::size_t longest_path = 4095;

bool is_plain(std::string_view name) {
    return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
           std::ranges::none_of(name, [](unsigned char c) { return c < ' ' || c == 0x7f || c == '/'; });
}

bool is_owner_trusted(const struct stat& status) {
    return status.st_uid == 0 || status.st_uid == ::geteuid();
}

bool can_others_write(const struct stat& status) { return (status.st_mode & (S_IWGRP | S_IWOTH)) != 0; }

/// O_PATH: looks up the name, opens no file: no driver, no file system in user space is asked to do so.
host::Fd look_up(int folder, std::string_view name) {
    return host::Fd(
        ::openat(folder, std::string(name).c_str(), O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC));
}

struct CloseDir {
    void operator()(DIR* dir) const { ::closedir(dir); }
};

} // namespace

Result<TrustedFolder> TrustedFolder::open(const std::string& top, std::string_view path) {
    if (!path.starts_with('/') || path.size() > longest_path)
        return fail("not an absolute path", std::string(path.substr(0, longest_path)));
    path.remove_prefix(1);
    const auto names = split(path, '/');
    if (!std::ranges::all_of(names, is_plain)) return fail("not a plain path", std::string(path));
    host::Fd folder(::open(top.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return fail("cannot open the folder", top, errno);
    std::string so_far;
    for (std::size_t i = 0; i < names.size(); ++i) {
        so_far += '/';
        so_far += names[i];
        folder = look_up(folder.get(), names[i]);
        struct stat status {};
        if (!folder || ::fstat(folder.get(), &status) != 0)
            return fail("cannot open the folder", so_far, errno);
        if (!is_owner_trusted(status)) return fail("the folder belongs to another user", so_far);
        const bool is_sticky_ancestor = i + 1 < names.size() && (status.st_mode & S_ISVTX) != 0;
        if (can_others_write(status) && !is_sticky_ancestor)
            return fail("others can write to the folder", so_far);
    }
    return TrustedFolder(std::move(folder));
}

Result<std::optional<host::Fd>> TrustedFolder::open_file(const std::string& name) const {
    if (!is_plain(name)) return fail("not a plain name", name);
    host::Fd file(
        ::openat(fd_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!file && errno == ENOENT) return std::nullopt;
    if (!file) return fail("cannot open", name, errno);
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) return fail("cannot read", name, errno);
    if (!S_ISREG(status.st_mode)) return fail("not a regular file", name);
    if (!is_owner_trusted(status) || can_others_write(status))
        return fail("another user owns the file or can write to it", name);
    return file;
}

std::vector<std::string> TrustedFolder::list(std::size_t most) const {
    std::vector<std::string> names;
    host::Fd folder(::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::unique_ptr<DIR, CloseDir> stream(folder ? ::fdopendir(folder.get()) : nullptr);
    if (!stream) return names;
    static_cast<void>(folder.release()); // the stream owns it now
    while (const dirent* entry = names.size() < most ? ::readdir(stream.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    return names;
}

} // namespace affinityd::coexist
