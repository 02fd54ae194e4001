// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "base/release.hpp"
#include "base/task_id.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dirent.h>

namespace affinityd::inventory {

/// Sorts a list of numbers, each once.
template <class Number>
void sort_unique(std::vector<Number>& numbers) {
    std::ranges::sort(numbers);
    const auto rest = std::ranges::unique(numbers);
    numbers.erase(rest.begin(), rest.end());
}

/// The entries of a directory that are plain numbers (processes, threads, open descriptors), one at a time in
/// the directory's order, so that a listing of a hundred thousand can be interrupted and resumed.
class NumberedEntries {
  public:
    /// `path` below `parent`; an Error if it cannot be opened.
    static Result<NumberedEntries> open(const host::Dir& parent, const std::string& path);
    /// The processes of a machine; of a recording without processes none. A process that is born or ends
    /// meanwhile may or may not be among them.
    static Result<NumberedEntries> open(const host::Root& root);

    /// The next number; no value at the end. A directory whose process leaves meanwhile ends early. An
    /// Error: the listing broke off, so what came so far is not all.
    Result<std::optional<int>> next();
    /// From the start again, with what has come since.
    void rewind() { ::rewinddir(stream_.get()); }
    [[nodiscard]] const host::Dir& dir() const { return dir_; }

  private:
    NumberedEntries() = default;

    host::Dir dir_;
    std::unique_ptr<DIR, Release<::closedir>> stream_; ///< null: there are none
};

/// The beginning of a descriptor's name, such as "socket:[5]"; "": it is closed. `descriptors`: /proc/PID/fd.
[[nodiscard]] std::string descriptor_target(const host::Dir& descriptors, int number);
[[nodiscard]] std::optional<std::uint64_t> inode_of_socket(std::string_view target);
/// The socket behind a descriptor; no value: it is something else, or closed.
[[nodiscard]] std::optional<std::uint64_t> socket_inode(const host::Dir& descriptors, int number);

/// Inodes of the sockets that a process has open, ascending, each once; the first `most` of its descriptors
/// are looked at, with one readlink(2) for each. `process`: its folder below /proc, or that of one of its
/// threads. An Error: its descriptors cannot be listed.
[[nodiscard]] Result<std::vector<std::uint64_t>> socket_inodes(const host::Dir& process, std::size_t most);

using PidStream = NumberedEntries;

/// Process ids in ascending order, in one go: on this machine through libproc2. A recording without processes
/// has none.
[[nodiscard]] Result<std::vector<int>> list_pids(const host::Root& root);

/// A kernel thread that works for a NIC's queue: threaded NAPI ("napi/eth0-8193") or a threaded interrupt
/// handler ("irq/24-eth0").
struct KernelThread {
    TaskId id;
    std::string comm;

    friend bool operator==(const KernelThread&, const KernelThread&) = default;
};

/// Finds these threads, in slices, among the children of kthreadd (task/2/children) and the threads known
/// before: proc(5) warns that a list read while children end may lack others. Where the list is missing, all
/// processes are looked at.
class KernelThreadScan {
  public:
    /// `known`: what the scan before found. `root` must outlive the scan.
    KernelThreadScan(const host::Root& root, std::span<const KernelThread> known);

    /// True: finished. Asks `out_of_time` after every stat line.
    bool step(const std::function<bool()>& out_of_time);
    /// The threads of a finished scan, ascending by tid. An Error: processes could not be listed or read.
    [[nodiscard]] Result<std::vector<KernelThread>> take();

  private:
    [[nodiscard]] Result<void> list();
    [[nodiscard]] Result<void> look_at(int pid);

    const host::Root* root_;
    bool is_listed_ = false;
    std::vector<int> pids_; ///< still to be looked at, from the back; before the list, those known before
    std::vector<KernelThread> found_;
    std::optional<Error> fault_;
};

} // namespace affinityd::inventory
