// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/subject.hpp"
#include "planner/reason.hpp"
#include "planner/undo.hpp"

#include <string>

namespace affinityd::planner {

using machine::FlowCount;
using machine::FlowTable;
using machine::IrqMask;
using machine::Setting;
using machine::SteeringMask;
using machine::Subject;
using machine::TaskMask;
using machine::UnitCpuset;

/// One wanted change: from what it is to what it shall be, and why. Every line of a plan is one of these.
struct Action {
    Subject subject;
    Setting from;       ///< as read
    Setting to;         ///< never empty for tasks and interrupts; an empty steering map is "off"
    std::string policy; ///< the policy that asks for it; "" for restoring an original
    Reason reason;
    bool restore = false; ///< restores the original: no policy wants the subject any more
    UndoPointer record{}; ///< of the subject, as it was planned with
};

/// Something that was asked for and cannot be had on this machine now.
struct Problem {
    std::string policy;
    std::string subject; ///< what it concerns: an interface, an expression, a task
    std::string message;
    std::string hint = {}; ///< what a person can do about it, a command where there is one; ""
    friend bool operator==(const Problem&, const Problem&) = default;
};

} // namespace affinityd::planner
