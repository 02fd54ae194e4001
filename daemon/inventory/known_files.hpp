// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/polled_files.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace affinityd::inventory {

/// The files that an epoll watched when it was read last, so that those that came since are told from those
/// that were there: of connections, those that were accepted and have not ended yet.
class KnownFiles {
  public:
    struct Fresh {
        std::size_t count = 0;
        std::vector<std::uint64_t> inodes; ///< theirs, ascending, as far as they are known
        /// Of those that were there before, all or some, ascending; no value: it is not known.
        std::optional<std::vector<std::uint64_t>> stayed;
    };
    /// `polled`: ascending by inode, each counts once. What came since; nothing at the first time. Of more
    /// than `most` files only the number is remembered: those that came are at least as many as there are
    /// more than before.
    Fresh see(std::span<const PolledFile> polled, std::size_t most);
    /// How many are remembered, at 4 bytes each.
    [[nodiscard]] std::size_t size() const { return inodes_.size(); }

  private:
    std::vector<std::uint32_t> inodes_; ///< ascending; the kernel numbers sockets with 32 bits
    std::size_t count_ = 0;             ///< of the last time
    bool is_first_ = true;
    bool are_known_ = false; ///< `inodes_` are all
};

} // namespace affinityd::inventory
