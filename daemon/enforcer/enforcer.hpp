// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/memory_mover.hpp"
#include "planner/action.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace affinityd::host {
class Root;
}

namespace affinityd::enforcer {

/// What became of an action. All of these happen in normal life.
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
    failed,        ///< anything else; `code` says what
};
[[nodiscard]] std::string_view to_string(Outcome outcome);
/// True for outcomes after which the subject is under our mask.
[[nodiscard]] bool took_effect(Outcome outcome);

/// What each errno of a write to an interrupt's or queue's mask means. EIO (up to Linux 6.11) and EPERM
/// (since): a managed interrupt, for good. Source: kernel/irq/manage.c, kernel/irq/proc.c,
/// arch/x86/kernel/apic/vector.c.
[[nodiscard]] Outcome irq_outcome(int code);

struct Applied {
    Outcome outcome = Outcome::failed;
    CpuSet granted; ///< mask after the change as read back; empty if it could not be read
    int code = 0;   ///< errno of the refusal, 0 if there was none
};

/// Carries out actions. It does not know why they were chosen.
class Enforcer {
  public:
    virtual ~Enforcer() = default;
    [[nodiscard]] virtual Applied apply(const planner::Action& action) = 0;
    /// The subject's mask now, for the undo journal and for putting back; nothing if it is gone or is another
    /// one by now.
    [[nodiscard]] virtual std::optional<CpuSet> present(const planner::Subject& subject) = 0;
    /// Has a process's memory moved, in its own time; take_moved() tells what became of it.
    virtual void move_memory(MemoryMove move) = 0;
    [[nodiscard]] virtual std::vector<MemoryMoved> take_moved() = 0;
    /// False: nothing on the machine is changed (dry run, recording).
    [[nodiscard]] virtual bool acts() const = 0;
};

/// Writes to this machine. `root` must be live and outlive the enforcer; nothing for a recorded root (it
/// cannot act).
[[nodiscard]] std::unique_ptr<Enforcer> make_real_enforcer(const host::Root& root);
/// Says done to everything and does nothing.
[[nodiscard]] std::unique_ptr<Enforcer> make_recording_enforcer();

} // namespace affinityd::enforcer
