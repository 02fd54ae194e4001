// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"
#include "inventory/numbered.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace affinityd::inventory {

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

} // namespace affinityd::inventory
