// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"
#include "host/fd.hpp"

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::host {

/// True if this errno value of a look into a kernel tree means "not there": the file, device or task is
/// absent or has just left. After all other values its state is unknown.
[[nodiscard]] bool means_absent(int code);

/// The text of an open file from where it is, at most `limit` bytes; or an errno value.
[[nodiscard]] std::expected<std::string, int> read_rest(const Fd& file, std::size_t limit);

/// A directory of a file tree, with the readers every room needs. Paths are relative, without a leading '/'.
/// An absent file is no value rather than an Error: kernel files come and go with versions, devices and
/// tasks. Any other failure is an Error.
class Dir {
  public:
    /// An absent directory: every read finds no file.
    Dir() = default;
    /// Opens `path` below `base` (AT_FDCWD or a directory descriptor). With `confined`, no symbolic link,
    /// absolute or with "..", leads out of the tree (openat2(2), RESOLVE_IN_ROOT): recordings are foreign
    /// input.
    static Result<Dir> open(int base, const std::string& path, bool confined);

    /// Whole text of a file, at most `limit` bytes (the rest is cut). No value: it is absent
    /// (ENOENT, ENOTDIR, ENODEV, ESRCH).
    [[nodiscard]] Result<std::optional<std::string>> read(const std::string& path,
                                                          std::size_t limit = 64U << 20) const;
    /// Text without spaces and line ends at both ends; no value also when it cannot be read. For the many
    /// small sysfs attributes where unreadable and absent both mean unknown.
    [[nodiscard]] std::optional<std::string> text(const std::string& path) const;
    [[nodiscard]] std::optional<long long>
    number(const std::string& path) const;                                       ///< decimal, may be negative
    [[nodiscard]] std::optional<CpuSet> cpu_list(const std::string& path) const; ///< "0-3,8"
    [[nodiscard]] std::optional<CpuSet> cpu_mask(const std::string& path) const; ///< "ff,00000000"

    /// Names in a directory, sorted, without "." and ".."; empty if it is not there. An Error if it is there
    /// and cannot be listed (EMFILE, EACCES): that is no empty directory.
    [[nodiscard]] Result<std::vector<std::string>> list(const std::string& path) const;
    [[nodiscard]] bool exists(const std::string& path) const;
    /// Device, inode, size and time of change of a file: another text as soon as the file is written or
    /// replaced. No value if it is not there.
    [[nodiscard]] std::optional<std::string> stamp(const std::string& path) const;
    /// The user that a file belongs to; no value if it is not there.
    [[nodiscard]] std::optional<unsigned> owner(const std::string& path) const;
    /// Target of a symbolic link as written; no value if it is none.
    [[nodiscard]] std::optional<std::string> link(const std::string& path) const;
    /// Path of `path` relative to this directory with all links resolved; no value if it leads outside or
    /// nowhere.
    [[nodiscard]] std::optional<std::string> resolve(const std::string& path) const;

    /// Writes the whole text by one write(2), as kernel files want it; the errno value, 0 on success. EROFS
    /// from a confined tree: a recording is never written to (rule: a rooted world cannot act).
    [[nodiscard]] int write(const std::string& path, std::string_view text) const;

    [[nodiscard]] Result<Dir> dir(const std::string& path) const;
    [[nodiscard]] Result<Fd> open_file(const std::string& path, int flags) const;
    [[nodiscard]] int fd() const { return fd_.get(); }

  private:
    Dir(Fd fd, bool confined) : fd_(std::move(fd)), confined_(confined) {}
    [[nodiscard]] int open_at(const std::string& path, int flags) const;
    Fd fd_;
    bool confined_ = true;
};

/// Where a machine is read: "/" for this one, another folder for a recorded one. Only the first may be
/// changed.
class Root {
  public:
    /// Any tree may be missing in a recording (then reads there find no file); a missing folder is an
    /// Error. `proc`: where this machine's tree of that name is mounted if not at its usual place.
    static Result<Root> open(const std::string& path = "/", const std::string& proc = {});

    [[nodiscard]] bool is_live() const { return live_; } ///< this machine, so that acting on it makes sense
    [[nodiscard]] const std::string& path() const { return path_; }
    /// Where control groups are mounted.
    [[nodiscard]] std::string cgroup_folder() const { return path_ + "/sys/fs/cgroup"; }
    [[nodiscard]] const Dir& proc() const { return proc_; }
    [[nodiscard]] const Dir& sys() const { return sys_; }
    [[nodiscard]] const Dir& etc() const { return etc_; } ///< for passwd(5) and group(5)
    [[nodiscard]] const Dir& run() const { return run_; } ///< for what runtimes of containers keep there

  private:
    Root(std::string path, bool live, Dir proc, Dir sys, Dir etc, Dir run)
        : path_(std::move(path)), live_(live), proc_(std::move(proc)), sys_(std::move(sys)),
          etc_(std::move(etc)), run_(std::move(run)) {}
    std::string path_;
    bool live_;
    Dir proc_;
    Dir sys_;
    Dir etc_;
    Dir run_;
};

} // namespace affinityd::host
