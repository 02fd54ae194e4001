// SPDX-License-Identifier: Apache-2.0
#include "planner/action.hpp"

#include <fmt/format.h>

namespace affinityd::planner {

namespace {

struct Printer {
    std::string operator()(const TaskMask& mask) const {
        return fmt::format("task {} ({})", mask.task.tid, mask.comm);
    }
    std::string operator()(const IrqMask& mask) const {
        return fmt::format("IRQ {} ({})", mask.irq, mask.label);
    }
    std::string operator()(const SteeringMask& mask) const {
        return fmt::format("{} {}", mask.nic, mask.queue);
    }
    std::string operator()(const UnitCpuset& cpuset) const { return "AllowedCPUs of " + cpuset.unit; }
};

} // namespace

std::string to_string(const Subject& subject) { return std::visit(Printer{}, subject); }

} // namespace affinityd::planner
