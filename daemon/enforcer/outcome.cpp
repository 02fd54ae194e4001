// SPDX-License-Identifier: Apache-2.0
#include "enforcer/enforcer.hpp"

#include <array>
#include <cerrno>

namespace affinityd::enforcer {

std::string_view to_string(Outcome outcome) {
    static constexpr std::array names{
        "done",          "narrowed",        "pending",          "gone",         "immovable",
        "deadline",      "not permitted",   "no CPU",           "vectors full", "busy",
        "number reused", "somebody else's", "not written down", "failed"};
    return names.at(static_cast<std::size_t>(outcome));
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
