// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/subordinate_ids.hpp"
#include "inventory/accept_sockets.hpp"
#include "inventory/accept_work.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include <sys/types.h>

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
        : root_(root), reader_(reader), work_(root), limits_(limits) {}

    /// What was read, by process. What is known of other processes is forgotten. Where not all are read,
    /// nothing is said of who else listens.
    [[nodiscard]] std::vector<AcceptSockets> read(std::span<const TaskId> processes,
                                                  const std::stop_token& stop);

  private:
    struct Space {
        int pid = 0; ///< of a process in it
        std::shared_ptr<ListeningSockets> listening;
        std::optional<std::uint64_t> opened{}; ///< as AcceptSockets has it
    };
    using Users = std::map<uid_t, std::vector<TaskId>>; ///< as persons
    [[nodiscard]] Users choose(std::span<const TaskId> processes);
    void read_user(uid_t user, const std::vector<TaskId>& processes, const std::stop_token& stop,
                   std::vector<AcceptSockets>& found);
    [[nodiscard]] const Space* around(int pid);
    void forget_closed();

    const host::Root& root_;
    AcceptReader& reader_;
    AcceptWork work_;
    Limits limits_;
    host::SubordinateIds persons_;
    std::size_t rounds_ = 0;
    bool is_partial_ = false;               ///< not all that were asked for are read in this round
    std::map<std::uint64_t, Space> spaces_; ///< network namespaces of this round
};

} // namespace affinityd::inventory
