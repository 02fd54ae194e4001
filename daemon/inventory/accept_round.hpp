// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/accept_sockets.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

namespace affinityd::inventory {

/// Reads the listeners of very many processes, so that those of one user do not keep the others' from being
/// read: of more than may be read, each user has as many as any other, and others the next time; and all of
/// one user's together take no longer than a while.
class AcceptRound {
  public:
    struct Limits {
        std::size_t processes = 1024;
        std::size_t listeners_of_user = 4096;
        std::chrono::nanoseconds of_user = std::chrono::seconds(2); ///< CPU time for a user's
    };
    /// `root` and `reader` must outlive it.
    AcceptRound(const host::Root& root, AcceptReader& reader, Limits limits)
        : root_(root), reader_(reader), limits_(limits) {}

    /// What was read, by process. What is known of other processes is forgotten. Where not all are read,
    /// nothing is said of who else listens.
    [[nodiscard]] std::vector<AcceptSockets> read(std::span<const TaskId> processes,
                                                  const std::stop_token& stop);

  private:
    using Users = std::map<unsigned, std::vector<TaskId>>;
    [[nodiscard]] Users choose(std::span<const TaskId> processes);
    void read_user(const std::vector<TaskId>& processes, const std::stop_token& stop,
                   std::vector<AcceptSockets>& found);
    [[nodiscard]] std::shared_ptr<const ListeningSockets> around(int pid);
    void forget_closed();

    const host::Root& root_;
    AcceptReader& reader_;
    Limits limits_;
    std::size_t rounds_ = 0;
    bool is_partial_ = false; ///< not all that were asked for are read in this round
    struct Space {
        int pid = 0; ///< of a process in it
        std::shared_ptr<ListeningSockets> listening;
    };
    std::map<std::uint64_t, Space> spaces_; ///< network namespaces of this round
};

} // namespace affinityd::inventory
