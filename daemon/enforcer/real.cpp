// SPDX-License-Identifier: Apache-2.0
#include "enforcer/enforcer.hpp"
#include "enforcer/irq_lookup.hpp"
#include "enforcer/unit_cpus.hpp"
#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "inventory/scan.hpp"
#include "planner/flow_counts.hpp"

#include <cerrno>

namespace affinityd::enforcer {

namespace {

using planner::Action;
using planner::IrqMask;
using planner::SteeringMask;
using planner::TaskMask;
using planner::UnitCpuset;

constexpr const char* machine_flow_entries = "sys/net/core/rps_sock_flow_entries";

Outcome task_outcome(int code) {
    switch (code) {
    case ESRCH:
        return Outcome::gone;
    case EPERM:
    case EACCES:
        return Outcome::not_permitted;
    case EBUSY:
        return Outcome::deadline;
    case EINVAL:
        return Outcome::no_cpu;
    default:
        return Outcome::failed;
    }
}

/// What systemd's answers mean; ENOENT also stands for a bus that is not there.
Outcome unit_outcome(int code) {
    switch (code) {
    case ENOENT:
    case ENXIO:
        return Outcome::gone;
    case EPERM:
    case EACCES:
        return Outcome::not_permitted;
    case ETIMEDOUT:
    case EAGAIN:
    case EBUSY:
        return Outcome::busy;
    default:
        return Outcome::failed;
    }
}

class RealEnforcer final : public Enforcer {
  public:
    explicit RealEnforcer(const host::Root& root) : root_(root), memory_(root) {}

    Applied apply(const Action& action) override {
        return std::visit([&](const auto& subject) { return write(subject, action); }, action.subject);
    }

    std::optional<CpuSet> present(const planner::Subject& subject) override {
        return std::visit([&](const auto& what) { return read(what); }, subject);
    }

    void move_memory(MemoryMove move) override { memory_.ask(std::move(move)); }
    std::vector<MemoryMoved> take_moved() override { return memory_.take_done(); }

    [[nodiscard]] bool acts() const override { return true; }

  private:
    /// Still the task that was meant? The number may belong to another by now; checked where the identity is
    /// older than this tick. (A change decided on facts just read cannot be told from one a microsecond
    /// earlier.)
    [[nodiscard]] bool is_same(const TaskMask& subject) const {
        const auto thread = inventory::read_thread(root_, subject.pid, subject.task.tid);
        return thread && thread->id == subject.task;
    }

    Applied write(const TaskMask& subject, const Action& action) {
        if (action.restore && !is_same(subject)) return {Outcome::gone, {}, ESRCH};
        const int code = host::set_affinity(subject.task.tid, action.to);
        if (code != 0) return {task_outcome(code), {}, code};
        const auto granted = host::get_affinity(subject.task.tid);
        if (!granted)
            return {granted.error() == ESRCH ? Outcome::gone : Outcome::failed, {}, granted.error()};
        // More than asked for would mean a race with another writer; less is the cpuset's doing or an offline
        // CPU.
        const bool all = granted->contains(action.to) || action.restore;
        return {all ? Outcome::done : Outcome::narrowed, *granted, 0};
    }

    Applied write(const IrqMask& subject, const Action& action) {
        const auto number = find_irq(root_, subject);
        if (!number) return {Outcome::gone, {}, ENOENT};
        const std::string folder = "irq/" + std::to_string(*number) + "/";
        const int code = root_.proc().write(folder + "smp_affinity_list", action.to.to_list());
        if (code != 0) return {irq_outcome(code), {}, code};
        const auto requested = root_.proc().cpu_list(folder + "smp_affinity_list").value_or(CpuSet{});
        const auto effective = root_.proc().cpu_list(folder + "effective_affinity_list");
        if (!requested.contains(action.to) && !action.restore) return {Outcome::narrowed, requested, 0};
        // An idle interrupt without remapping keeps its old CPU until it fires again: not a refusal.
        if (effective && !effective->empty() && !action.to.contains(*effective))
            return {Outcome::pending, requested, 0};
        return {Outcome::done, requested, 0};
    }

    Applied write_flow_count(const SteeringMask& subject, const Action& action) {
        const auto text = std::to_string(planner::from_bits(action.to));
        const int code = planner::is_machine_flows(subject)
                             ? root_.proc().write(machine_flow_entries, text)
                             : root_.sys().write(steering_path(root_, subject), text);
        if (code != 0) return {code == ENOENT ? Outcome::gone : irq_outcome(code), {}, code};
        return {Outcome::done, read(subject).value_or(CpuSet{}), 0}; // the kernel rounds up to a power of two
    }

    Applied write(const SteeringMask& subject, const Action& action) {
        if (planner::is_flow_count(subject)) return write_flow_count(subject, action);
        const int code = root_.sys().write(steering_path(root_, subject), action.to.to_mask());
        if (code != 0) return {code == ENOENT ? Outcome::gone : irq_outcome(code), {}, code};
        return {Outcome::done, root_.sys().cpu_mask(steering_path(root_, subject)).value_or(CpuSet{}), 0};
    }

    Applied write(const UnitCpuset& subject, const Action& action) {
        const int code = units_.write(subject.unit, action.to);
        if (code != 0) return {unit_outcome(code), {}, code};
        return {Outcome::done, units_.read(subject.unit).value_or(action.to), 0};
    }

    std::optional<CpuSet> read(const UnitCpuset& subject) {
        const auto cpus = units_.read(subject.unit);
        return cpus ? std::optional(*cpus) : std::nullopt;
    }

    /// The unfiltered mask (status shows offline CPUs too), because it is what has to be put back.
    std::optional<CpuSet> read(const TaskMask& subject) {
        if (!is_same(subject)) return std::nullopt;
        return inventory::read_allowed(root_, subject.pid, subject.task.tid);
    }

    std::optional<CpuSet> read(const IrqMask& subject) {
        const auto number = find_irq(root_, subject);
        return number ? root_.proc().cpu_list("irq/" + std::to_string(*number) + "/smp_affinity_list")
                      : std::nullopt;
    }

    std::optional<CpuSet> read(const SteeringMask& subject) {
        if (!planner::is_flow_count(subject)) return root_.sys().cpu_mask(steering_path(root_, subject));
        const auto number = planner::is_machine_flows(subject)
                                ? root_.proc().number(machine_flow_entries)
                                : root_.sys().number(steering_path(root_, subject));
        if (!number || *number < 0 || *number > 0xffffffffLL) return std::nullopt;
        return planner::to_bits(static_cast<std::uint32_t>(*number));
    }

    const host::Root& root_;
    MemoryMover memory_;
    UnitCpus units_;
};

} // namespace

std::unique_ptr<Enforcer> make_real_enforcer(const host::Root& root) {
    if (!root.is_live()) return nullptr;
    return std::make_unique<RealEnforcer>(root);
}

} // namespace affinityd::enforcer
