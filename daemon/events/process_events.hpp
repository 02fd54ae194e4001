// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/daemon.hpp"
#include "events/sources.hpp"
#include "host/proc_connector.hpp"

#include <chrono>
#include <memory>

namespace affinityd::events {

/// Hands the kernel's process events to the manager: execs and renames always, changes of users if a
/// policy asks for them, births of processes if it matters what they do later, births of threads and exits
/// only while some process is under policy. Lost events become a full pass. A socket that breaks is opened
/// again, with a pause that grows from one second to a minute; the full pass that follows covers the gap.
/// A storm of them is bounded in time per turn of the loop, and other work has its turns in between.
class ProcessEvents {
  public:
    /// Where the kernel tells of no processes (said in the log), the periodic pass and later looks do all the
    /// work. An Error: the loop takes no source.
    static Result<std::unique_ptr<ProcessEvents>> start(sd_event* event, core::Daemon& manager,
                                                        core::Log& log);
    ProcessEvents(sd_event* event, core::Daemon& manager, core::Log& log);
    ProcessEvents(const ProcessEvents&) = delete;
    ProcessEvents& operator=(const ProcessEvents&) = delete;

    /// Which events are of interest depends on the policies, and on whether some process is under one.
    /// Without policies the daemon does not listen.
    void follow();
    /// Processes are to be looked at again at other times than before.
    void wait_for_due();
    /// True if some events wait to be handled.
    [[nodiscard]] bool waiting() const;

  private:
    [[nodiscard]] Result<int> open();
    [[nodiscard]] Result<void> take();
    [[nodiscard]] core::EventQueue& queue() const { return manager_.tasks().events(); }
    /// Until `end`, or until no process waits. The time then.
    std::chrono::steady_clock::time_point work(std::chrono::steady_clock::time_point now,
                                               std::chrono::steady_clock::time_point end);
    void handle(const core::ProcessNews& process);
    void handle(int pid, const core::ThreadNews& news);
    void take_care_of_rest(bool is_more, std::chrono::steady_clock::time_point now);
    void take_rest();
    void yield(bool others_first);
    void mute();
    void set_filter();
    [[nodiscard]] bool is_of_use() const;

    core::Daemon& manager_;
    host::ProcConnector::Wanted wanted_;
    std::unique_ptr<host::ProcConnector> events_;
    struct {
        unsigned takes = 0;
        std::chrono::steady_clock::time_point ended{};
    } row_;               ///< takes that follow each other at once
    bool yields_ = false; ///< to all other work
    bool is_paused_ = false;
    Subscription subscription_;
    Deferred rest_{
        [this] { take_rest(); }}; ///< for events that wait in memory, which the descriptor does not show
    Timer pause_{[this] { rest_.arm(); }}; ///< of those that are to be looked at again
};

} // namespace affinityd::events
