// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/task_id.hpp"

#include <string>
#include <variant>
#include <vector>

namespace affinityd::planner {

/// A thread's CPU mask.
struct TaskMask {
    TaskId task;
    int pid = 0;      ///< its process
    std::string comm; ///< its name when it was read, for people
    friend bool operator==(const TaskMask& a, const TaskMask& b) { return a.task == b.task; }
};

/// An interrupt's CPU mask. The identity is device + label: numbers are reused after a driver reload and
/// looked up again before each write.
struct IrqMask {
    std::string device; ///< device path below /sys, or the chip's PCI function, or ""
    std::string label;  ///< action name: "eth0-TxRx-3"
    unsigned irq = 0;   ///< its number when it was read
    friend bool operator==(const IrqMask& a, const IrqMask& b) {
        return a.device == b.device && a.label == b.label;
    }
};

/// A steering map of one software queue: rps_cpus of a receive, xps_cpus of a transmit queue.
struct SteeringMask {
    std::string device; ///< device path below /sys; for virtual interfaces the name again
    std::string nic;    ///< interface name when it was read
    std::string queue;  ///< "rx-0", "tx-3"
    friend bool operator==(const SteeringMask& a, const SteeringMask& b) {
        return a.device == b.device && a.queue == b.queue;
    }
};

/// The AllowedCPUs= of a systemd unit; the empty set: it is not set.
struct UnitCpuset {
    std::string unit; ///< "nginx.service"
    friend bool operator==(const UnitCpuset&, const UnitCpuset&) = default;
};

using Subject = std::variant<TaskMask, IrqMask, SteeringMask, UnitCpuset>;

/// One wanted change: from what it is to what it shall be, and why. Every line of a plan is one of these.
struct Action {
    Subject subject;
    CpuSet from; ///< present mask, as read
    CpuSet to;   ///< wanted mask; never empty for tasks and interrupts (an empty steering map is "off")
    std::string policy;   ///< which policy asks for it; "" for putting an original back
    std::string reason;   ///< for people: why this mask
    bool restore = false; ///< puts the original back: nothing wants the subject any more
};

/// Something that was asked for and cannot be had on this machine now.
struct Problem {
    std::string policy;
    std::string subject; ///< what it concerns: an interface, an expression, a task
    std::string message;
    friend bool operator==(const Problem&, const Problem&) = default;
};

struct Plan {
    std::vector<Action> actions;
    std::vector<Problem> problems;
};

/// "task 123 (nginx)", "IRQ 45 (eth0-TxRx-3)", "eth0 tx-3"; for logs and tables.
[[nodiscard]] std::string to_string(const Subject& subject);

} // namespace affinityd::planner
