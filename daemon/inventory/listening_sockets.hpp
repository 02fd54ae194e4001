// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"
#include "inventory/local_socket.hpp"
#include "inventory/net_files.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

namespace affinityd::inventory {

/// The TCP sockets of a network namespace that listen. Of this process's own by sock_diag(7), which looks at
/// no others; of another by its /proc/PID/net/tcp and tcp6, which begin with these.
class ListeningSockets {
  public:
    static constexpr std::size_t most = 65536;         ///< of this namespace
    static constexpr std::size_t longest = 512U << 10; ///< bytes of each file, some 150 for a socket

    ListeningSockets() = default;
    /// Of the namespace in which this process is.
    [[nodiscard]] static ListeningSockets read(const host::Root& root, int pid);
    /// Those of a list, which are all that there are.
    [[nodiscard]] static ListeningSockets of(std::span<const LocalSocket> sockets);

    /// False: there are others, or they could not be read.
    [[nodiscard]] bool are_all() const { return are_all_; }
    [[nodiscard]] bool contains(std::uint64_t inode) const { return addresses_.contains(inode); }
    /// Those that listen on the same address and port as this one, ascending; with it. Of another namespace,
    /// an interface (SO_BINDTODEVICE) does not tell them apart.
    [[nodiscard]] std::vector<std::uint64_t> at_address_of(std::uint64_t inode) const;
    /// Forgets those that are not in `later` any more.
    void keep_only(const ListeningSockets& later);

  private:
    using Address = std::tuple<IpAddress, std::uint16_t, std::uint32_t>; ///< with the interface
    void add(const LocalSocket& socket);
    void finish();
    [[nodiscard]] bool list(int family);
    [[nodiscard]] bool read_file(const host::Root& root, int pid, const NetFile& file);
    std::map<std::uint64_t, Address> addresses_; ///< by inode
    std::map<Address, std::vector<std::uint64_t>> inodes_;
    bool are_all_ = false;
};

} // namespace affinityd::inventory
