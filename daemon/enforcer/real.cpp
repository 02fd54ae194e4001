// SPDX-License-Identifier: Apache-2.0
#include "enforcer/enforcer.hpp"
#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "host/self.hpp"
#include "inventory/process_files.hpp"
#include "machine/queue_files.hpp"

#include <cerrno>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::enforcer {

namespace {

using machine::FlowTable;
using machine::IrqMask;
using machine::KernelMask;
using machine::Setting;
using machine::SteeringMask;
using machine::TaskMask;
using machine::UnitCpuset;
using planner::Action;

class RealEnforcer final : public Enforcer {
  public:
    explicit RealEnforcer(const host::Root& root) : root_(root) {}

    Applied apply(const Action& action) override {
        return std::visit([&](const auto& subject) { return write(subject, action); }, action.subject);
    }

    Result<std::optional<Setting>> present(const machine::Subject& subject) override {
        return std::visit([&](const auto& what) { return read(what); }, subject);
    }

    [[nodiscard]] std::optional<CpuSet> glance(unsigned irq) const override {
        return root_.proc().cpu_list(fmt::format("irq/{}/smp_affinity_list", irq));
    }

    [[nodiscard]] bool may_return(const machine::Subject& subject) const override {
        if (const auto* task = std::get_if<TaskMask>(&subject))
            return task->task.tid == task->pid && inventory::lives_on(root_, task->task);
        return machine::has_device(root_, subject);
    }

    [[nodiscard]] bool acts() const override { return true; }
    [[nodiscard]] std::uint64_t ticks() const override { return host::ticks_since_boot(); }

  private:
    Applied write(const TaskMask& subject, const Action& action) const {
        const int tid = subject.task.tid;
        const auto same = is_same(subject);
        if (!same || !*same) return not_found(same);
        const CpuSet& to = action.to.cpus();
        if (const int code = host::set_affinity(tid, to); code != 0)
            return {outcome_of(subject, code), {}, code};
        auto granted = host::get_affinity(tid);
        if (!granted) return {outcome_of(subject, granted.error()), {}, granted.error()};
        // The kernel never gives more than it was asked for: the write succeeded, but another program has
        // replaced the mask since. The next look at the task finds that.
        if (!to.contains(*granted)) return {Outcome::done, to, 0};
        // Less is the cpuset's doing, or an offline CPU.
        const bool is_all = *granted == to || action.restore;
        return {is_all ? Outcome::done : Outcome::narrowed, std::move(*granted), 0};
    }

    /// True: the number still belongs to the task that is meant. An Error: nothing is known (EMFILE). For a
    /// main thread, the process's file says the same, and the kernel has that at hand: each file in /proc
    /// that is opened for the first time is an inode more, and thousands of short programs would have the CPU
    /// that they run on free those of one another. About other threads that file says nothing.
    [[nodiscard]] Result<bool> is_same(const TaskMask& subject) const {
        const bool is_main = subject.task.tid == subject.pid;
        const auto path = is_main ? fmt::format("{}/stat", subject.pid)
                                  : fmt::format("{}/task/{}/stat", subject.pid, subject.task.tid);
        inventory::StatBuffer buffer;
        const auto line = inventory::read_stat(root_.proc(), path, buffer);
        if (!line) return std::unexpected(line.error());
        return *line && (*line)->start_time == subject.task.start_time && !(*line)->is_dead();
    }

    Applied write(const IrqMask& subject, const Action& action) {
        const auto number = machine::find_irq(root_, subject);
        if (!number || !*number) return not_found(number);
        const std::string folder = fmt::format("irq/{}/", **number);
        const CpuSet& to = action.to.cpus();
        const int code = root_.proc().write(folder + "smp_affinity_list", to.to_list());
        // From Linux 6.12 on its own owner may not write the file of a line that never moves.
        if (code == EACCES && root_.proc().owner(folder + "smp_affinity_list") == ::geteuid())
            return {Outcome::immovable, {}, code};
        if (code != 0) return {outcome_of(subject, code), {}, code};
        auto requested = root_.proc().cpu_list(folder + "smp_affinity_list").value_or(to);
        const auto effective = root_.proc().cpu_list(folder + "effective_affinity_list");
        Outcome outcome = Outcome::done;
        if (!requested.contains(to) && !action.restore) outcome = Outcome::narrowed;
        // An idle interrupt without remapping keeps its old CPU until it fires again: not a refusal.
        else if (effective && !effective->empty() && !to.contains(*effective))
            outcome = Outcome::pending;
        return {outcome, std::move(requested), 0};
    }

    Applied write(const SteeringMask& subject, const Action& action) {
        const auto path = machine::queue_file(root_, subject);
        if (!path || !*path) return not_found(path);
        return written(root_.sys().write(**path, action.to.cpus().to_mask()), subject, action);
    }

    /// The kernel rounds counts up to a power of two.
    Applied write(const FlowTable& subject, const Action& action) {
        const auto text = std::to_string(action.to.count().entries);
        if (subject.is_machine())
            return written(root_.proc().write(machine::machine_flow_entries, text), subject, action);
        const auto path = machine::queue_file(root_, subject);
        if (!path || !*path) return not_found(path);
        return written(root_.sys().write(**path, text), subject, action);
    }

    Applied write(const KernelMask& subject, const Action& action) {
        const auto [dir, path] = machine::kernel_file(root_, subject);
        return written(dir.write(path, action.to.cpus().to_mask()), subject, action);
    }

    /// The subject is gone, or an Error kept it from being found.
    static Applied not_found(const auto& found) {
        if (found) return {Outcome::gone, {}, ENOENT};
        return {Outcome::failed, {}, found.error().code};
    }

    Applied written(int code, const auto& queue, const Action& action) const {
        if (code != 0) return {outcome_of(queue, code), {}, code};
        const auto granted = read(queue);
        return {Outcome::done, granted ? granted->value_or(action.to) : action.to, 0};
    }

    // systemd answers in its own time, so units go another way: behaviours/fences.
    Applied write(const UnitCpuset&, const Action&) { return {Outcome::failed, {}, ENOTSUP}; }
    [[nodiscard]] Result<std::optional<Setting>> read(const UnitCpuset& subject) const {
        return fail("a unit cannot be read at once", subject.unit, ENOTSUP);
    }

    /// The unfiltered mask (status shows offline CPUs too), because it is what has to be put back.
    [[nodiscard]] Result<std::optional<Setting>> read(const TaskMask& subject) const {
        const auto same = is_same(subject);
        if (!same) return std::unexpected(same.error());
        if (!*same) return std::nullopt;
        if (auto cpus = inventory::read_allowed(root_, subject.pid, subject.task.tid))
            return std::move(*cpus);
        // The second file could not be read: has the task gone in between?
        if (const auto still = is_same(subject); still && !*still) return std::nullopt;
        return fail("its CPUs cannot be read", machine::to_string(subject));
    }

    [[nodiscard]] Result<std::optional<Setting>> read(const auto& queue) const {
        return machine::read_setting(root_, queue);
    }

    const host::Root& root_;
};

} // namespace

std::unique_ptr<Enforcer> make_real_enforcer(const host::Root& root) {
    if (!root.is_live()) return nullptr;
    return std::make_unique<RealEnforcer>(root);
}

} // namespace affinityd::enforcer
