// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"
#include "host/subordinate_ids.hpp"
#include "inventory/listening_sockets.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>

namespace affinityd::inventory {

/// Finds who has a listener open, by its inode: servers hand listeners on to other processes, under other
/// descriptors. One thread at a time may wait for another's answer.
class ListenerHolders {
  public:
    using Clock = std::chrono::steady_clock;
    /// Links of /proc/PID/fd that are read for one question, some microsecond each.
    static constexpr std::size_t most_links = 8192, most_links_anywhere = 131'072;
    /// Between two walks through all processes.
    static constexpr std::chrono::seconds between_walks{30};

    struct Holder {
        int pid = 0;
        int number = 0; ///< its descriptor
    };
    explicit ListenerHolders(const host::Root& root);

    /// Which of these processes has it open; no value: none that was looked at.
    [[nodiscard]] std::optional<Holder> among(std::span<const int> pids, std::uint64_t inode) const;
    /// It listens in the network namespace of this process: as of a second ago at most. False: it does not,
    /// or in another one.
    [[nodiscard]] bool is_listed(std::uint64_t inode);
    /// Any process of the machine: of those that listen here, as of the last walk.
    [[nodiscard]] std::optional<Holder> anywhere(std::uint64_t inode);

  private:
    void list();
    void walk();
    std::optional<host::Root> root_; ///< its own, so that it may outlive others
    std::mutex mutex_;
    host::SubordinateIds persons_;
    ListeningSockets listed_;
    Clock::time_point listed_at_{}, walked_at_{};
    std::unordered_map<std::uint64_t, Holder> found_; ///< by inode
};

} // namespace affinityd::inventory
