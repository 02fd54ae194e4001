// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/job.hpp"
#include "app/left_children.hpp"
#include "app/log.hpp"
#include "enforcer/executor.hpp"
#include "inventory/pid_stream.hpp"
#include "inventory/process_scan.hpp"
#include "state/journal.hpp"

#include <functional>
#include <optional>
#include <string>

namespace affinityd::app {

/// At the end: tasks that inherited one of our masks, and that no event has announced yet, get what their
/// creators got back, also if these have ended since. Children of such tasks may have inherited it too, so
/// the processes are gone through until none is left.
class InheritedRestorer final : public Job {
  public:
    /// True if a policy's masks stay when the daemon stops.
    using Keeps = std::function<bool(const std::string& policy)>;
    /// References must outlive it.
    struct Parts {
        const host::Root& root;
        state::Journal& journal;
        enforcer::Executor& executor;
        const LeftChildren& left;
        Log& log;
    };
    InheritedRestorer(const Parts& parts, CpuSet online, Keeps keeps)
        : parts_(parts), online_(std::move(online)), keeps_(std::move(keeps)) {}

    bool step(const OutOfTime& out_of_time) override;

  private:
    [[nodiscard]] bool begin_round();
    void begin_process(int pid);
    [[nodiscard]] bool finish_process(const OutOfTime& out_of_time);
    void put_back(const inventory::Thread& thread);

    Parts parts_;
    CpuSet online_;
    Keeps keeps_;
    std::optional<inventory::PidStream> pids_;   ///< of the round
    std::optional<inventory::ProcessScan> scan_; ///< of the process that is looked at now
    unsigned rounds_ = 0;
    std::size_t count_ = 0;     ///< put back in this round
    unsigned empty_rounds_ = 0; ///< in a row: a child may come into the list after the first of them
};

} // namespace affinityd::app
