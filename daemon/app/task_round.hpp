// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/tasks.hpp"
#include "app/work.hpp"
#include "inventory/descriptors.hpp"

#include <functional>
#include <optional>
#include <string>

namespace affinityd::app {

/// The pass's way over all processes: each is listed, read as far as somebody wants it, and placed.
class TaskRound final : public Job {
  public:
    struct Listeners {
        std::function<void(const inventory::ProcessScan& process)> seen; ///< wanted or not
        std::function<void(const KnownProcess& process)> placed;         ///< all its threads were looked at
    };
    /// References must outlive it.
    TaskRound(const host::Root& root, Tasks& tasks, Listeners listeners, Log& log)
        : root_(root), tasks_(tasks), listeners_(std::move(listeners)), log_(log) {}
    bool step(const OutOfTime& out_of_time) override;

  private:
    /// True: there is a process to go on with, or the list is at its end.
    [[nodiscard]] bool begin_next();
    [[nodiscard]] std::optional<int> next_pid();
    /// The rest is not listed: what is known may still be there.
    std::nullopt_t give_up(const std::string& why);
    const host::Root& root_;
    Tasks& tasks_;
    Listeners listeners_;
    Log& log_;
    std::optional<inventory::PidStream> pids_;
    std::optional<Turn> turn_; ///< of the process that is looked at now
    bool is_listed_ = false;   ///< all processes were named
};

} // namespace affinityd::app
