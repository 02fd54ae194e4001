// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "planner/action.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace affinityd::host {
class Root;
}

namespace affinityd::enforcer {

/// The outcome of an action. All of these happen in normal life.
enum class Outcome : std::uint8_t {
    done,      ///< the kernel granted what was asked
    narrowed,  ///< granted less: cut by the task's cpuset, or an interrupt that goes to part of its mask only
    pending,   ///< accepted; takes effect with the interrupt's next arrival (no interrupt remapping)
    gone,      ///< the task, interrupt or queue is no longer there
    immovable, ///< kernel-managed interrupt or protected kernel thread: will never work
    deadline,  ///< SCHED_DEADLINE task: affinity needs a cpuset partition (EBUSY)
    not_permitted, ///< EPERM / EACCES
    no_cpu,        ///< no CPU of the mask is online or allowed (EINVAL)
    full,          ///< the CPU has no interrupt vector left (ENOSPC): another CPU may do
    busy,          ///< later (EAGAIN, EBUSY on interrupts)
    foreign, ///< a restore found a setting that is not ours and left it: another program has changed it since
    unrecorded, ///< not tried: the undo journal could not be written; `code` says why
    failed,     ///< anything else; `code` says what
};
[[nodiscard]] std::string_view to_string(Outcome outcome);
/// True for outcomes after which the subject is set to what was asked for, or to part of it.
[[nodiscard]] bool took_effect(Outcome outcome);
/// True for refusals that CPUs and cpusets which change may cause for a moment.
[[nodiscard]] bool is_of_the_moment(Outcome outcome);

/// The meaning of a write's errno: sched_setaffinity(2); kernel/irq/manage.c, kernel/irq/proc.c,
/// arch/x86/kernel/apic/vector.c; net/core/net-sysfs.c, where nothing is managed and EPERM is a missing
/// CAP_NET_ADMIN.
[[nodiscard]] Outcome outcome_of(const machine::Subject& subject, int code);

struct Applied {
    Outcome outcome = Outcome::failed;
    machine::Setting granted; ///< as read back after the change; what was asked for if it could not be read
    int code = 0;             ///< errno of the refusal, 0 if there was none
};

/// Carries out actions, without knowing why they were chosen.
class Enforcer {
  public:
    virtual ~Enforcer() = default;
    /// Makes sure that the subject is still the one that is meant, then writes, then reads back.
    [[nodiscard]] virtual Applied apply(const planner::Action& action) = 0;
    /// The subject's setting now, for the undo journal and for putting back. No value: it is gone, or is
    /// another one by now. An Error: nothing is known (no file can be opened, systemd does not answer).
    [[nodiscard]] virtual Result<std::optional<machine::Setting>>
    present(const machine::Subject& subject) = 0;
    /// The mask of whichever interrupt has this number now: the cheapest way to see that another program has
    /// changed it. No value: there is none, or it cannot be read.
    [[nodiscard]] virtual std::optional<CpuSet> glance(unsigned) const { return std::nullopt; }
    /// True for a subject that is gone, while what it belongs to is there: it may come back with the setting
    /// that it has. A main thread comes back when another thread of its process runs a program.
    [[nodiscard]] virtual bool may_return(const machine::Subject&) const { return false; }
    /// False: nothing on the machine is changed (dry run, recording).
    [[nodiscard]] virtual bool acts() const = 0;
    /// Clock ticks since boot, as the start times of tasks; 0: not known.
    [[nodiscard]] virtual std::uint64_t ticks() const { return 0; }
};

/// Writes to this machine. `root` must be live and outlive the enforcer; nullptr for a recorded root, which
/// cannot be changed.
[[nodiscard]] std::unique_ptr<Enforcer> make_real_enforcer(const host::Root& root);
/// For a dry run: reads interrupts and queues of `root`, which must outlive it, answers `done` to everything
/// and changes nothing.
[[nodiscard]] std::unique_ptr<Enforcer> make_recording_enforcer(const host::Root& root);

} // namespace affinityd::enforcer
