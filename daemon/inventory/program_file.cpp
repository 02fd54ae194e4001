// SPDX-License-Identifier: Apache-2.0
#include "inventory/program_file.hpp"

#include "base/text.hpp"
#include "host/fd.hpp"

#include <cerrno>
#include <cstdint>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace affinityd::inventory {

namespace {

using host::Fd;

struct File {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t mount = 0; ///< 0: a kernel before 5.8, which does not tell
    unsigned mode = 0;
    unsigned uid = ~0U;

    [[nodiscard]] bool is(const File& other) const { return device == other.device && inode == other.inode; }
    /// Nobody but root can have written it.
    [[nodiscard]] bool is_roots() const { return uid == 0 && (mode & (S_IWGRP | S_IWOTH)) == 0; }
};

/// What the kernel knows of a file already: with AT_STATX_DONT_SYNC no file system in user space is asked.
std::optional<File> look(int folder, const char* name, int flags) {
    struct statx status {};
    constexpr unsigned mount_id = 0x1000; // STATX_MNT_ID
    constexpr unsigned wanted = STATX_INO | STATX_TYPE | STATX_MODE | STATX_UID | mount_id;
    if (::statx(folder, name, flags | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, wanted, &status) != 0)
        return std::nullopt;
    File file{(std::uint64_t{status.stx_dev_major} << 32U) | status.stx_dev_minor, status.stx_ino, 0,
              status.stx_mode, status.stx_uid};
    if ((status.stx_mask & mount_id) != 0) file.mount = status.stx_mnt_id;
    return file;
}

/// The files of this machine by path, as its first process sees them: the daemon itself may live in a mount
/// namespace of its own. Paths are chosen by strangers: no look-up waits for anybody.
class Files {
  public:
    explicit Files(const host::Root& root) {
        for (const char* top : {"1/root", "self/root"}) // the second where the daemon is not root's
            if (auto opened = top_ ? fail("open already") : root.proc().open_file(top, O_PATH | O_DIRECTORY))
                top_ = std::move(*opened);
            else if (!top_)
                note(opened.error().code);
    }
    /// What kept from looking: no descriptor or memory was left. 0: nothing did.
    [[nodiscard]] int shortage() const { return shortage_; }

    /// `path` has no leading '/'. No value: there is none, or it cannot be known.
    [[nodiscard]] std::optional<File> find(const std::string& path) {
        if (path.empty()) return look(top_.get(), "", AT_EMPTY_PATH);
        if (const auto file = known_to_kernel(path)) return look(file->get(), "", AT_EMPTY_PATH);
        return by_roots_folders(path);
    }

  private:
    /// While a program runs, the kernel has all of its path in its cache. No value: it is not there.
    [[nodiscard]] std::optional<Fd> known_to_kernel(const std::string& path) {
        open_how how{.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                     .mode = 0,
                     .resolve = RESOLVE_CACHED | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
        constexpr int attempts = 3; // a rename elsewhere makes one fail
        for (int i = 0; i < attempts; ++i) {
            Fd file(static_cast<int>(::syscall(SYS_openat2, top_.get(), path.c_str(), &how, sizeof how)));
            if (file) return file;
            if (errno != EAGAIN) break;
        }
        note(errno);
        return std::nullopt;
    }

    /// For file systems that ask a server again and again, and kernels before 5.12: only through folders that
    /// none but root can have put there.
    [[nodiscard]] std::optional<File> by_roots_folders(const std::string& path) {
        Fd at = open_step(top_.get(), ".");
        for (const auto name : split(path, '/')) {
            struct statfs system {};
            const auto folder = look(at.get(), "", AT_EMPTY_PATH);
            if (!folder || !folder->is_roots() || ::fstatfs(at.get(), &system) != 0 ||
                system.f_type == AUTOFS_SUPER_MAGIC)
                return std::nullopt;
            at = open_step(at.get(), std::string(name));
            if (!at) return std::nullopt;
        }
        return look(at.get(), "", AT_EMPTY_PATH);
    }

    Fd open_step(int folder, const std::string& name) {
        Fd file(::openat(folder, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
        if (!file) note(errno);
        return file;
    }
    void note(int code) {
        if (code == EMFILE || code == ENFILE || code == ENOMEM) shortage_ = code;
    }

    Fd top_;
    int shortage_ = 0;
};

/// The nearest folder of the path that is there.
std::optional<File> folder_of(Files& files, std::string path) {
    while (!path.empty()) {
        const auto slash = path.rfind('/');
        path.resize(slash == std::string::npos ? 0 : slash);
        if (auto folder = files.find(path)) return folder;
    }
    return std::nullopt;
}

bool has_first_processes_mounts(const host::Root& root, const host::Dir& process) {
    const auto theirs = process.link("ns/mnt");
    auto first = root.proc().link("1/ns/mnt");
    if (!first) first = root.proc().link("self/ns/mnt");
    return theirs && first && *theirs == *first;
}

/// True if the process lives in another mount namespace than the first process, and one of root's made it
/// (as systemd does for PrivateTmp=): it belongs to the first process's user namespace.
bool is_in_namespace_of_roots(const host::Root& root, const host::Dir& process) {
    if (has_first_processes_mounts(root, process)) return false;
    const auto mounts = process.open_file("ns/mnt", O_RDONLY);
    auto first = root.proc().open_file("1/ns/user", O_RDONLY);
    if (!first) first = root.proc().open_file("self/ns/user", O_RDONLY);
    if (!mounts || !first) return false;
    const Fd owner(::ioctl(mounts->get(), NS_GET_USERNS));
    const auto theirs = owner ? look(owner.get(), "", AT_EMPTY_PATH) : std::nullopt;
    const auto ours = look(first->get(), "", AT_EMPTY_PATH);
    return theirs && ours && theirs->is(*ours);
}

} // namespace

Program program_of(std::string link) {
    constexpr std::string_view removed = " (deleted)"; // the package was upgraded under the running program
    Program program{std::move(link)};
    program.is_removed = program.path.ends_with(removed);
    if (program.is_removed) program.path.resize(program.path.size() - removed.size());
    return program;
}

Result<bool> is_program_of_this_machine(const host::Root& root, const host::Dir& process,
                                        const Program& program) {
    if (!root.is_live()) return true;
    const auto running = look(process.fd(), "exe", 0);
    if (!running || !program.path.starts_with('/')) return false;
    Files files(root);
    const auto path = program.path.substr(1);
    const auto there = files.find(path);
    if (there && there->is(*running)) return true;
    const auto folder = folder_of(files, path);
    if (files.shortage() != 0) return fail("cannot look for a program", program.path, files.shortage());
    if (!folder) return false;
    // It lies on the mount that this machine has at that place, so the path is no other's: the file was
    // removed or replaced while it runs, or something was mounted over it.
    if (running->mount != 0) {
        if (running->mount == folder->mount) return true;
    } else if (has_first_processes_mounts(root, process)) {
        return true;
    }
    // The same in the mount namespace of a service. Of its mounts it can only be said that root made them.
    return program.is_removed && running->device == folder->device && running->is_roots() &&
           is_in_namespace_of_roots(root, process);
}

} // namespace affinityd::inventory
