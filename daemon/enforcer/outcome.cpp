// SPDX-License-Identifier: Apache-2.0
#include "enforcer/enforcer.hpp"

#include <cerrno>

namespace affinityd::enforcer {

std::string_view to_string(Outcome outcome) {
    switch (outcome) {
    case Outcome::done:
        return "done";
    case Outcome::narrowed:
        return "narrowed";
    case Outcome::pending:
        return "pending";
    case Outcome::gone:
        return "gone";
    case Outcome::immovable:
        return "immovable";
    case Outcome::deadline:
        return "deadline";
    case Outcome::not_permitted:
        return "not permitted";
    case Outcome::no_cpu:
        return "no CPU";
    case Outcome::full:
        return "vectors full";
    case Outcome::busy:
        return "busy";
    case Outcome::reused:
        return "number reused";
    case Outcome::foreign:
        return "somebody else's";
    case Outcome::unrecorded:
        return "not written down";
    case Outcome::failed:
        return "failed";
    }
    return "failed";
}

Outcome outcome_of(const machine::Subject& subject, int code) {
    const bool is_task = std::holds_alternative<machine::TaskMask>(subject);
    const bool is_irq = std::holds_alternative<machine::IrqMask>(subject);
    switch (code) {
    case 0:
        return Outcome::done;
    case ESRCH:
    case ENOENT:
        return Outcome::gone;
    case EPERM: // since Linux 6.12 also of a managed interrupt
        return is_irq ? Outcome::immovable : Outcome::not_permitted;
    case EACCES:
        return Outcome::not_permitted;
    case EIO: // of a managed interrupt up to Linux 6.11
        return is_irq ? Outcome::immovable : Outcome::failed;
    case EINVAL:
    case EOVERFLOW: // none of the CPUs is online or allowed, or none is one at all
        return Outcome::no_cpu;
    case ENOSPC:
        return Outcome::full;
    case EBUSY: // of a task: SCHED_DEADLINE
        return is_task ? Outcome::deadline : Outcome::busy;
    case EAGAIN:
        return Outcome::busy;
    default:
        return Outcome::failed;
    }
}

bool is_of_the_moment(Outcome outcome) { return outcome == Outcome::no_cpu || outcome == Outcome::busy; }

bool has_gone(Outcome outcome) { return outcome == Outcome::gone || outcome == Outcome::reused; }

bool took_effect(Outcome outcome) {
    return outcome == Outcome::done || outcome == Outcome::narrowed || outcome == Outcome::pending;
}

} // namespace affinityd::enforcer
