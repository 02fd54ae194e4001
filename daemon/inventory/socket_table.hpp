// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"
#include "inventory/background_dump.hpp"
#include "inventory/local_socket.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace affinityd::inventory {

/// The TCP and UDP sockets of this process's network namespace by inode, taken in slices: sock_diag(7) on
/// this machine, read by a thread of its own, proc/net of a recording (and where the kernel has no
/// sock_diag). Sockets that no process has open are left out.
class SocketTable {
  public:
    static constexpr std::size_t most_sockets = 1U << 18; ///< at 32 bytes each

    /// Of more than `most` sockets the first are kept: TCP before UDP, IPv4 before IPv6, listening ones
    /// before connected ones, these in the order of the kernel's hash table, which is a random sample. `root`
    /// must outlive the reading.
    SocketTable(const host::Root& root, Wanted wanted, std::size_t most = most_sockets);
    SocketTable(SocketTable&&) noexcept;
    SocketTable& operator=(SocketTable&&) noexcept;
    ~SocketTable();

    /// Takes what has been read; asks `out_of_time` after some hundred sockets, or 0.1 ms without any. True:
    /// finished, or broken off by a fault.
    bool step(const std::function<bool()>& out_of_time);
    /// Why the reading broke off; what is in the table then is not all.
    [[nodiscard]] const std::optional<Error>& fault() const { return fault_; }

    /// The socket of this inode, in constant time; nullptr: unknown. Valid until the next step.
    [[nodiscard]] const LocalSocket* find(std::uint64_t inode) const;
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] bool is_truncated() const { return is_truncated_; } ///< there were more than `most`
    void for_each(const std::function<void(const LocalSocket&)>& use) const;

  private:
    struct Reading;
    struct Entry {
        LocalSocket socket;
        std::uint32_t next; ///< place of the next entry of its chain, counted from 1; 0: the last
    };
    Result<void> read_some();
    void add(const LocalSocket& socket);
    void shrink(std::size_t size);
    [[nodiscard]] std::uint32_t& chain(std::uint64_t inode);

    // Chains of fixed number over a deque: no addition ever moves what is there, so none takes long.
    std::vector<std::uint32_t> chains_;
    std::deque<Entry> entries_;
    std::size_t most_;
    bool is_truncated_ = false;
    std::optional<Error> fault_;
    std::unique_ptr<Reading> reading_; ///< none once all was read
};

/// The table in one go, for callers outside the event loop.
[[nodiscard]] Result<SocketTable> read_socket_table(const host::Root& root, Wanted wanted,
                                                    std::size_t most = SocketTable::most_sockets);

} // namespace affinityd::inventory
