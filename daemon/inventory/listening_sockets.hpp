// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"
#include "host/subordinate_ids.hpp"
#include "inventory/local_socket.hpp"
#include "inventory/net_files.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include <sys/types.h>

namespace affinityd::inventory {

/// The TCP sockets of a network namespace that listen. Of this process's own by sock_diag(7), which looks at
/// no others; of another by its /proc/PID/net/tcp and tcp6, which begin with these.
class ListeningSockets {
  public:
    static constexpr std::size_t most = 1U << 20;      ///< of this namespace that are gone through
    static constexpr std::size_t most_of_user = 16384; ///< that are remembered
    static constexpr std::size_t longest = 512U << 10; ///< bytes of each file, some 150 for a socket

    ListeningSockets() = default;
    /// Of the namespace in which this process is. A user is as a person here, see SubordinateIds.
    [[nodiscard]] static ListeningSockets read(const host::Root& root, int pid,
                                               host::SubordinateIds& persons);
    /// Those of a list, which are all that there are.
    [[nodiscard]] static ListeningSockets of(std::span<const LocalSocket> sockets);

    /// False: this user may have others: he has very many, or all could not be read. Who shares an address by
    /// SO_REUSEPORT is one user.
    /// False: not all could be read.
    [[nodiscard]] bool are_all() const { return are_all_; }
    [[nodiscard]] bool are_all_of(uid_t user) const { return are_all_ && !crowded_.contains(user); }
    [[nodiscard]] bool contains(std::uint64_t inode) const { return known_.contains(inode); }
    /// It is one of them, also of a user who has very many.
    [[nodiscard]] bool has(std::uint64_t inode) const;
    /// Who made it; no value: it is not known.
    [[nodiscard]] std::optional<uid_t> user_of(std::uint64_t inode) const;
    /// Those that listen on the same address and port as this one, ascending; with it. Of another namespace,
    /// an interface (SO_BINDTODEVICE) does not tell them apart.
    [[nodiscard]] std::vector<std::uint64_t> at_address_of(std::uint64_t inode) const;
    /// Forgets those that are not in `later` any more.
    void keep_only(const ListeningSockets& later);

  private:
    using Address = std::tuple<IpAddress, std::uint16_t, std::uint32_t>; ///< with the interface
    struct Known {
        Address address;
        uid_t user = 0;
    };
    void add(const LocalSocket& socket, host::SubordinateIds& persons);
    void finish();
    [[nodiscard]] bool list(int family, host::SubordinateIds& persons);
    [[nodiscard]] bool read_file(const host::Root& root, int pid, const NetFile& file,
                                 host::SubordinateIds& persons);
    std::map<std::uint64_t, Known> known_; ///< by inode
    std::map<Address, std::vector<std::uint64_t>> inodes_;
    std::map<uid_t, std::size_t> counts_; ///< by user
    std::set<uid_t> crowded_;             ///< users who have too many
    std::vector<std::uint64_t> rest_;     ///< inodes of those of these users that are not known, ascending
    bool are_all_ = false;
};

} // namespace affinityd::inventory
