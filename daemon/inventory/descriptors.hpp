// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace affinityd::inventory {

/// The entries of a directory that are plain numbers (processes, threads, open descriptors), one at a time in
/// the directory's order and in fixed memory, so that a listing of a hundred thousand can be interrupted and
/// resumed.
class NumberedEntries {
  public:
    /// `path` below `parent`; an Error if it cannot be opened.
    static Result<NumberedEntries> open(const host::Dir& parent, const std::string& path);

    /// The next number; no value at the end. A directory whose process leaves meanwhile ends early. An
    /// Error: the listing broke off, so what came so far is not all.
    Result<std::optional<int>> next();
    /// From the start again, with what has come since.
    void rewind();
    [[nodiscard]] const host::Dir& dir() const { return dir_; }

  private:
    using Buffer = std::array<char, 4096>; ///< filled by getdents64(2)
    explicit NumberedEntries(host::Dir dir)
        : dir_(std::move(dir)), buffer_(std::make_unique_for_overwrite<Buffer>()) {}
    Result<bool> fill();

    host::Dir dir_;
    std::size_t at_ = 0;
    std::size_t filled_ = 0;
    std::unique_ptr<Buffer> buffer_;
};

/// The socket behind a descriptor; no value: it is something else, or closed. `descriptors`: /proc/PID/fd.
[[nodiscard]] std::optional<std::uint64_t> socket_inode(const host::Dir& descriptors, int number);

/// The errno value, EACCES or EPERM, if it may not be read what a descriptor leads to (CAP_SYS_PTRACE, a
/// security module); 0: it may.
[[nodiscard]] int why_no_link(const host::Dir& descriptors, int number);

/// Finds the sockets that a process has open, with one readlink(2) for each of its descriptors. It may have a
/// million: the walk can be left and taken up again.
class DescriptorWalk {
  public:
    /// `process`: its folder below /proc, or that of one of its threads.
    static Result<DescriptorWalk> open(const host::Dir& process);

    /// Looks at the next `most` descriptors. True: there are no more.
    Result<bool> step(std::size_t most);
    /// Inodes of the sockets that were found, ascending, each once.
    [[nodiscard]] std::vector<std::uint64_t> take_inodes();

  private:
    explicit DescriptorWalk(NumberedEntries entries) : entries_(std::move(entries)) {}
    NumberedEntries entries_;
    std::vector<std::uint64_t> inodes_;
};

/// The processes of a machine, one at a time, so that a listing of a hundred thousand can be interrupted
/// and resumed. From the directory, as libproc2 takes a thousand at once, which is most of a millisecond in
/// one system call. A process that is born or ends meanwhile may or may not be among them.
class PidStream {
  public:
    static Result<PidStream> open(const host::Root& root);

    /// No value: that was the last. An Error: the listing broke off, so processes are missing.
    Result<std::optional<int>> next();

  private:
    explicit PidStream(std::optional<NumberedEntries> entries) : entries_(std::move(entries)) {}
    std::optional<NumberedEntries> entries_; ///< no value: a recording without processes, or the end
};

/// Process ids in ascending order, in one go: on this machine through libproc2, in a recording, or where the
/// library cannot serve, from the directory. A recording without processes has none.
[[nodiscard]] Result<std::vector<int>> list_pids(const host::Root& root);

} // namespace affinityd::inventory
