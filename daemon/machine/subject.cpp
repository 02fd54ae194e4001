// SPDX-License-Identifier: Apache-2.0
#include "machine/subject.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

namespace affinityd::machine {

namespace {

struct Printer {
    std::string operator()(const TaskMask& mask) const {
        return fmt::format("task {} ({})", mask.task.tid, mask.comm);
    }
    std::string operator()(const IrqMask& mask) const {
        return fmt::format("IRQ {} ({})", mask.irq, mask.label);
    }
    std::string operator()(const SteeringMask& map) const {
        return fmt::format("{} {}-{}", map.nic, map.direction == Direction::rx ? "rx" : "tx", map.queue);
    }
    std::string operator()(const FlowTable& table) const {
        return table.is_machine() ? "machine flow-entries"
                                  : fmt::format("{} rx-{}-flows", table.nic, table.queue);
    }
    std::string operator()(const UnitCpuset& cpuset) const { return "AllowedCPUs of " + cpuset.unit; }
    std::string operator()(const KernelMask& mask) const {
        return mask.of == KernelMask::Of::work ? "unbound workqueues" : "new interrupts";
    }
};

std::size_t mix(std::size_t seed, std::size_t value) {
    return seed ^ (value + 0x9e3779b97f4a7c15ULL + (seed << 6U) + (seed >> 2U));
}

/// Over the fields that make the identity.
struct Hasher {
    std::size_t operator()(const TaskMask& mask) const { return std::hash<TaskId>{}(mask.task); }
    std::size_t operator()(const IrqMask& mask) const {
        if (mask.is_line) return mix(mask.irq, 1);
        return mix(mix(text(mask.device), text(mask.label)), mask.ordinal);
    }
    std::size_t operator()(const SteeringMask& map) const {
        return mix(mix(text(map.device), static_cast<std::size_t>(map.direction)),
                   mix(map.queue, map.port()));
    }
    std::size_t operator()(const FlowTable& table) const {
        return mix(text(table.device), mix(table.queue, table.port()));
    }
    std::size_t operator()(const UnitCpuset& cpuset) const { return text(cpuset.unit); }
    std::size_t operator()(const KernelMask& mask) const { return static_cast<std::size_t>(mask.of); }
    static std::size_t text(const std::string& value) { return std::hash<std::string>{}(value); }
};

} // namespace

const CpuSet& Setting::cpus() const {
    static const CpuSet none;
    const auto* cpus = std::get_if<CpuSet>(&value_);
    return cpus == nullptr ? none : *cpus;
}

FlowCount Setting::count() const {
    const auto* count = std::get_if<FlowCount>(&value_);
    return count == nullptr ? FlowCount{} : *count;
}

std::string Setting::to_string() const {
    if (is_cpus()) return cpus().to_list();
    return std::to_string(count().entries);
}

std::string to_string(const Subject& subject) { return std::visit(Printer{}, subject); }

bool is_queue(const Subject& subject) {
    return std::holds_alternative<IrqMask>(subject) || std::holds_alternative<SteeringMask>(subject) ||
           std::holds_alternative<FlowTable>(subject) || std::holds_alternative<KernelMask>(subject);
}

} // namespace affinityd::machine

std::size_t std::hash<affinityd::machine::Subject>::operator()(
    const affinityd::machine::Subject& subject) const noexcept {
    using namespace affinityd::machine;
    return mix(std::visit(Hasher{}, subject), subject.index());
}
