// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/commands.hpp"
#include "core/task_table.hpp"
#include "core/work.hpp"
#include "load/load.hpp"
#include "status/status.hpp"
#include "world/world.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::inventory {
class ProcessScan;
}

namespace affinityd::core {

/// Counters of a policy, as far as behaviours count them.
struct Counters {
    std::optional<double> bytes{};     ///< that its interfaces carried
    double reads = 0, local_reads = 0; ///< of its sockets; on the core where the packets arrived
};

/// Something that the daemon can do beside placing tasks and queues. The daemon works without any of them.
/// The loop's thread calls all, each time in the order of behaviours/meson.build; no call waits.
class Behaviour {
  public:
    using Clock = std::chrono::steady_clock;
    virtual ~Behaviour() = default;

    /// The ways of policies with `affinity: auto`, for a world that comes into force.
    virtual World::Choices choices(const World&) { return {}; }
    /// Texts that count beside the files of policies, when these are read.
    virtual std::vector<Overlay> overlays() const { return {}; }
    virtual void released(const std::string&, uid_t) {} ///< a policy, or all (""), by a user's hand
    /// A process was read, under policy or not, in a pass or because of an event.
    virtual void saw(const inventory::ProcessScan&, bool /*is_in_pass*/) {}
    virtual void placed(const KnownProcess&) {} ///< all its threads were looked at
    virtual void dropped(const TaskId&) {}      ///< the process has ended, or left its policy

    // A pass reads the machine, then looks at all tasks, then at all queues.
    virtual void begin_pass() {}
    virtual Slices after_tasks() { co_return; }
    virtual Slices end_pass() { co_return; }

    virtual Clock::time_point due() const { return Clock::time_point::max(); } ///< of tick()
    virtual void tick() {}
    virtual int fd() const { return -1; } ///< the loop calls readable() when it is
    virtual void readable() {}

    virtual void begin_stop(bool /*is_handover*/) {}
    virtual bool is_quiet() const { return true; } ///< no answer is owed; it takes a bounded time
    virtual Slices end() { co_return; }            ///< the last work: it may wait for a disk

    virtual bool holds(const TaskId&) const { return false; } ///< the task is to stay where it is
    virtual void count(const std::string& /*policy*/, Counters&) {}
    virtual void report(status::Overview&) const {}
    virtual void describe(const KnownProcess&, status::ProcessStatus&) const {}
    virtual void explain(const inventory::ProcessScan&, status::ProcessExplanation&) const {}
    virtual std::vector<status::Finding> problems() const { return {}; }
    virtual bool run(Order&) { return false; }     ///< true: the verb is its own, and is answered
    virtual Joining* joining() { return nullptr; } ///< takes what threads ask for themselves
};

using Behaviours = std::vector<std::unique_ptr<Behaviour>>;

} // namespace affinityd::core
