// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"
#include "planner/closeness.hpp"

#include <compare>
#include <memory>
#include <optional>
#include <string>

namespace affinityd::planner {

/// Tasks that belong together: `together: measured`, or `near: measured`.
struct CompanyId {
    std::string policy;
    unsigned rule = 0; ///< 0: of the policy; i + 1: the threads of its rule i
    TaskId process;    ///< whose threads they are; {}: tasks of all its processes
    friend auto operator<=>(const CompanyId&, const CompanyId&) = default;
};

/// That a task is to be close to others.
struct InCompany {
    CompanyId id;
    std::shared_ptr<const Closeness> closeness; ///< never null
    bool has_our_mask = false; ///< the mask that it has is from us: a restarted daemon moves no task
};

/// How close a task is to its company.
struct Nearness {
    unsigned others = 0; ///< tasks of the company, without itself
    unsigned cpu = 0;    ///< where the closest of these is; the first of several CPUs
    /// For one way to that one, and on average to all others; no value: not measured.
    std::optional<double> ns, mean_ns;
    unsigned same = 0;        ///< of the others: those whose first CPU is its own
    unsigned measured = 0;    ///< of the others: those that the average is of
    bool is_measured = false; ///< a matrix decided; else the topology
    bool is_guess = false;    ///< there is a matrix, but nothing in it as close as that one is by topology
    bool is_shared = false;   ///< the first CPU of the closest is its own
    bool is_foreign = false;  ///< there is a matrix, but it is another machine's
    friend bool operator==(const Nearness&, const Nearness&) = default;
};

} // namespace affinityd::planner
