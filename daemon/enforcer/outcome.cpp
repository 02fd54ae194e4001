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

Outcome irq_outcome(int code) {
    switch (code) {
    case ENOENT:
        return Outcome::gone;
    case EIO:
    case EPERM:
        return Outcome::immovable;
    case EACCES:
        return Outcome::not_permitted;
    case EINVAL:
    case EOVERFLOW:
        return Outcome::no_cpu; // none of the CPUs is online, or none is one at all
    case ENOSPC:
        return Outcome::full;
    case EAGAIN:
    case EBUSY:
        return Outcome::busy;
    default:
        return Outcome::failed;
    }
}

Outcome steering_outcome(int code) {
    if (code == EPERM) return Outcome::not_permitted;
    return code == EIO ? Outcome::failed : irq_outcome(code);
}

bool is_of_the_moment(Outcome outcome) { return outcome == Outcome::no_cpu || outcome == Outcome::busy; }

bool has_gone(Outcome outcome) { return outcome == Outcome::gone || outcome == Outcome::reused; }

bool took_effect(Outcome outcome) {
    return outcome == Outcome::done || outcome == Outcome::narrowed || outcome == Outcome::pending;
}

} // namespace affinityd::enforcer
