// SPDX-License-Identifier: Apache-2.0
#include "simulated_enforcer.hpp"

#include "machine/queue_files.hpp"

#include <cerrno>
#include <fstream>
#include <string>
#include <thread>
#include <variant>

#include <fmt/format.h>

namespace affinityd::app::test {

enforcer::Applied SimulatedEnforcer::apply(const planner::Action& action) {
    if (before_apply) before_apply();
    ++applied;
    done.push_back(action.subject);
    std::this_thread::sleep_for(takes);
    if (const auto found = refuse.find(action.subject); found != refuse.end())
        return {found->second, {}, EIO};
    if (const auto found = refuse_with.find(action.subject); found != refuse_with.end())
        return {enforcer::irq_outcome(found->second), {}, found->second};
    if (std::holds_alternative<planner::IrqMask>(action.subject) && full.intersects(action.to.cpus()))
        return {enforcer::irq_outcome(ENOSPC), {}, ENOSPC};
    if (!read_now(action.subject)) return {enforcer::Outcome::gone, {}, ESRCH};
    std::visit([&](const auto& subject) { write(subject, action.to); }, action.subject);
    if (after_apply) after_apply(action);
    return {enforcer::Outcome::done, action.to, 0};
}

Result<std::optional<machine::Setting>> SimulatedEnforcer::present(const planner::Subject& subject) {
    ++read;
    if (unreadable.contains(subject)) return fail("it cannot be read", {}, unreadable_with);
    return read_now(subject);
}

std::optional<CpuSet> SimulatedEnforcer::glance(unsigned irq) const {
    const auto root = host::Root::open(machine_.path());
    return root->proc().cpu_list(fmt::format("irq/{}/smp_affinity_list", irq));
}

bool SimulatedEnforcer::may_return(const planner::Subject& subject) const {
    const auto root = host::Root::open(machine_.path());
    if (const auto* task = std::get_if<planner::TaskMask>(&subject))
        return root && task->task.tid == task->pid && inventory::lives_on(*root, task->task);
    return root && machine::has_device(*root, subject);
}

SimulatedEnforcer::Present SimulatedEnforcer::read_now(const planner::Subject& subject) const {
    return std::visit([&](const auto& what) { return get(what); }, subject);
}

SimulatedEnforcer::Present SimulatedEnforcer::get(const planner::TaskMask& task) const {
    const auto root = host::Root::open(machine_.path());
    const auto thread = inventory::read_thread(*root, task.pid, task.task.tid);
    if (!thread || !*thread || (*thread)->id != task.task) return std::nullopt;
    return (*thread)->allowed;
}

SimulatedEnforcer::Present SimulatedEnforcer::get(const planner::IrqMask& irq) const {
    const auto root = host::Root::open(machine_.path());
    return machine::read_setting(*root, irq).value_or(std::nullopt);
}

SimulatedEnforcer::Present SimulatedEnforcer::get(const planner::SteeringMask& steering) const {
    const auto text = CpuSet::parse_mask(machine_.text(file_of(steering)));
    return text ? Present(*text) : std::nullopt;
}

SimulatedEnforcer::Present SimulatedEnforcer::get(const planner::FlowTable& table) const {
    const auto number = machine_.text(file_of(table));
    if (number.empty()) return std::nullopt;
    return machine::FlowCount{static_cast<std::uint32_t>(std::stoul(number))};
}

}

std::string SimulatedEnforcer::file_of(const planner::SteeringMask& steering) const {
    const auto path = machine::queue_file(*host::Root::open(machine_.path()), steering);
    return "sys/" + path.value_or(std::nullopt).value_or("gone");
}

std::string SimulatedEnforcer::file_of(const planner::FlowTable& table) const {
    if (table.is_machine()) return "proc/sys/net/core/rps_sock_flow_entries";
    const auto path = machine::queue_file(*host::Root::open(machine_.path()), table);
    return "sys/" + path.value_or(std::nullopt).value_or("gone");
}

void SimulatedEnforcer::write(const planner::TaskMask& task, const machine::Setting& to) const {
    const bool is_main = task.pid == task.task.tid;
    const auto name = "proc/" + std::to_string(task.pid) + "/";
    const auto own = name + "task/" + std::to_string(task.task.tid) + "/status";
    for (const auto& file : is_main ? std::vector{own, name + "status"} : std::vector{own}) {
        std::ifstream in(machine_.path(file));
        std::string text, line;
        while (std::getline(in, line))
            text +=
                (line.starts_with("Cpus_allowed_list:") ? "Cpus_allowed_list:\t" + to.to_string() : line) +
                "\n";
        machine_.tree().file(file, text);
    }
}

void SimulatedEnforcer::write(const planner::IrqMask& irq, const machine::Setting& to) const {
    const auto number = machine::find_irq(*host::Root::open(machine_.path()), irq);
    machine_.set_irq(number.value_or(std::nullopt).value_or(irq.irq), to.to_string());
}

void SimulatedEnforcer::write(const planner::SteeringMask& steering, const machine::Setting& to) const {
    machine_.tree().file(file_of(steering), to.cpus().to_mask() + "\n");
}

void SimulatedEnforcer::write(const planner::FlowTable& table, const machine::Setting& to) const {
    machine_.tree().file(file_of(table), to.to_string() + "\n");
}

} // namespace affinityd::app::test
