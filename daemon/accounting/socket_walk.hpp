// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "inventory/numbered.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace affinityd::accounting {

/// The sockets that a process has open, one descriptor at a time: a process may have a hundred thousand of
/// them. A duplicated descriptor is met twice.
class SocketWalk {
  public:
    /// Looks at no more than `most` descriptors, in the order of the directory. No value: the process is
    /// gone. An Error: its descriptors cannot be listed.
    static Result<std::optional<SocketWalk>> open(const host::Root& root, int pid, std::size_t most);

    /// Calls `found` with the inode of each socket, until `out_of_time` says so. True: those were all. An
    /// Error: the listing broke off.
    [[nodiscard]] Result<bool> step(const std::function<void(std::uint64_t inode)>& found,
                                    const std::function<bool()>& out_of_time);
    /// There were more descriptors than were looked at.
    [[nodiscard]] bool is_truncated() const { return is_truncated_; }

  private:
    SocketWalk(inventory::NumberedEntries entries, std::size_t most)
        : entries_(std::move(entries)), left_(most) {}
    inventory::NumberedEntries entries_;
    std::size_t left_;
    bool is_truncated_ = false;
};

} // namespace affinityd::accounting
