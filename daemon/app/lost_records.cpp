// SPDX-License-Identifier: Apache-2.0
#include "app/lost_records.hpp"

#include "host/root.hpp"
#include "inventory/lookup.hpp"
#include "machine/queue_files.hpp"
#include "planner/plan.hpp"
#include "state/namesake.hpp"

#include <type_traits>
#include <utility>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

/// True if both names lead to the same interrupt, or to the same file. What was at a place before may be at
/// another one now: a vector of the device that has got another number.
bool are_one(const host::Root& root, const machine::Subject& former, const machine::Subject& subject) {
    return std::visit(
        [&]<class What>(const What& what) {
            const auto* other = std::get_if<What>(&former);
            if constexpr (std::is_same_v<What, machine::IrqMask>) {
                const auto number = machine::find_irq(root, what).value_or(std::nullopt);
                return number && other && number == machine::find_irq(root, *other).value_or(std::nullopt);
            } else if constexpr (requires { machine::queue_file(root, what); }) {
                const auto file = machine::queue_file(root, what).value_or(std::nullopt);
                return file && other && file == machine::queue_file(root, *other).value_or(std::nullopt);
            } else {
                return false;
            }
        },
        subject);
}

} // namespace

machine::Setting LostRecords::default_of(const machine::Subject& subject,
                                         const topology::Topology& topology) const {
    if (std::holds_alternative<machine::TaskMask>(subject)) return topology.possible;
    if (std::holds_alternative<machine::FlowTable>(subject)) return machine::FlowCount{};
    if (!std::holds_alternative<machine::IrqMask>(subject))
        return CpuSet{}; // steering maps: off, units: not set
    return root_.proc().cpu_mask("irq/default_smp_affinity").value_or(topology.online);
}

std::optional<planner::UndoRecord> LostRecords::recall(const machine::Subject& subject,
                                                       const machine::Setting& present,
                                                       const std::string& policy,
                                                       const topology::Topology& topology) const {
    if (journal_.contains(subject)) return std::nullopt;
    const auto ours = journal_.recall(subject, present, topology.online);
    if (!ours) return std::nullopt;
    auto original = ours->original ? *ours->original : default_of(subject, topology);
    if (original == present) return std::nullopt;
    return planner::UndoRecord{std::move(original), present, present, policy};
}

/// An interface may be renamed, and its interrupts requested anew with its new name in their labels, while
/// nobody looks. Who has a virtual interface's name now need not be who had it.
Result<void> LostRecords::follow_name(const machine::Subject& subject, const machine::Setting& present,
                                      const CpuSet& online) {
    if (const auto other = state::find_namesake(journal_.contents(), subject))
        if (auto done = journal_.rename(other->subject, state::by_index(other->subject)); !done) return done;
    if (journal_.contains(subject)) return {};
    const auto former = journal_.find_former(subject);
    if (!former) return {};
    if (!planner::is_still_ours(former->record, present, online) &&
        !planner::was_widened(subject, former->record, present, online)) {
        if (!are_one(root_, former->subject, subject)) return {};
        // Put back, or set by somebody else. With two records in force, each would undo what the other does;
        // but which original it had has to be known: it may be equal to a mask that it once had from us.
        if (auto done = journal_.settle(former->subject); !done) return done;
    }
    return journal_.rename(former->subject, subject);
}

void LostRecords::take_up(const machine::Subject& subject, const machine::Setting& present,
                          const std::string& policy, const topology::Topology& topology) {
    if (const auto done = follow_name(subject, present, topology.online); !done)
        log_.error(done.error().to_string());
    auto record = recall(subject, present, policy, topology);
    if (!record) return;
    if (const auto done = journal_.put(subject, std::move(*record)); !done)
        log_.error(done.error().to_string());
}

void LostRecords::follow_kernel(const machine::Subject& subject, const machine::Setting& present,
                                const std::string& policy) {
    auto record = journal_.find(subject);
    if (!record) return;
    record->before.reset();
    record->policy = policy;
    record->granted = present;
    if (const auto* task = std::get_if<machine::TaskMask>(&subject)) {
        // The kernel remembers what it was asked for, and gives that again when it can, so it stays ours.
        // CPUs that are offline now are still in the mask.
        if (auto allowed = inventory::read_allowed(root_, task->pid, task->task.tid))
            record->granted = std::move(*allowed);
    } else {
        record->asked = present;
    }
    if (const auto done = journal_.put(subject, std::move(*record)); !done)
        log_.error(done.error().to_string());
}

void LostRecords::assume_ours(const machine::Subject& subject, const machine::Setting& present,
                              const std::string& policy, const topology::Topology& topology) {
    if (journal_.contains(subject)) return;
    auto original = default_of(subject, topology);
    if (original == present) return;
    if (const auto done = journal_.put(subject, {std::move(original), present, present, policy}); done) {
        ++assumed_;
    } else {
        all_written_ = false;
        log_.error(done.error().to_string());
    }
}

void LostRecords::end_pass() {
    if (!journal_.damaged() || !all_written_) return; // the next pass tries again
    log_.warn(
        fmt::format("the undo journal was damaged: {} subjects without a record are where policies want "
                    "them, so they are assumed ours and will get the kernel's defaults back",
                    assumed_));
    if (const auto done = journal_.mended(); !done) log_.error(done.error().to_string());
}

} // namespace affinityd::app
