// SPDX-License-Identifier: Apache-2.0
#include "enforcer/task_masks.hpp"

#include "host/root.hpp"
#include "inventory/process_files.hpp"

#include <cerrno>

#include <fmt/format.h>

namespace affinityd::enforcer {

namespace {

using machine::TaskMask;

/// The process whose mask a task was born with: that of its thread group, or of its parent. No value: the
/// task is gone.
std::optional<int> creator_of(const host::Root& root, int tid) {
    const auto process = inventory::read_process_id(root, tid);
    return process == tid ? inventory::read_parent(root, tid) : process;
}

} // namespace

TaskMasks::TaskMasks(const host::Root& root) : TaskMasks(root, Kernel{}) {}

/// Still the task that is meant? Its number may belong to another by now. An Error: it cannot be known
/// (EMFILE). Of a main thread, the process's file says the same, and the kernel has that at hand: each file
/// in /proc that is opened for the first time is an inode more, and thousands of short programs would have
/// the CPU that they run on free those of one another. Of other threads that file says nothing.
Result<bool> TaskMasks::is_same(const TaskMask& subject) const {
    const bool is_main = subject.task.tid == subject.pid;
    const auto path = is_main ? fmt::format("{}/stat", subject.pid)
                              : fmt::format("{}/task/{}/stat", subject.pid, subject.task.tid);
    inventory::StatBuffer buffer;
    const auto line = inventory::read_stat(root_.proc(), path, buffer);
    if (!line) return std::unexpected(line.error());
    return *line && (*line)->start_time == subject.task.start_time && !(*line)->is_dead();
}

/// The handle knows also of a successor within one clock tick, which has the same start time.
bool TaskMasks::is_still(const TaskMask& subject, const host::TaskHandle& handle) const {
    const auto state = handle.state();
    if (state != host::TaskHandle::State::unknown) return state == host::TaskHandle::State::there;
    return is_same(subject).value_or(true);
}

Applied TaskMasks::write(const TaskMask& subject, const planner::Action& action) const {
    const int tid = subject.task.tid;
    const auto handle = kernel_.hold(tid); // before it is made sure what the number means
    const auto same = is_same(subject);
    if (!same) return {Outcome::failed, {}, same.error().code};
    if (!*same) return {Outcome::gone, {}, ESRCH};
    const CpuSet& to = action.to.cpus();
    const int code = kernel_.set(tid, to);
    if (code != 0) return {outcome_of(subject, code), {}, code};
    if (!is_still(subject, handle)) return take_back(tid, to);
    auto granted = host::get_affinity(tid);
    if (!granted) return {granted.error() == ESRCH ? Outcome::gone : Outcome::failed, {}, granted.error()};
    // The kernel never gives more than it was asked for: another program has set its own mask in between, and
    // the next look at the task sees that.
    if (!to.contains(*granted)) return {Outcome::done, to, 0};
    // Less is the cpuset's doing, or an offline CPU.
    const bool all = *granted == to || action.restore;
    return {all ? Outcome::done : Outcome::narrowed, std::move(*granted), 0};
}

/// Whoever has the number now was born a moment ago, so the mask that its creator has is its own.
Applied TaskMasks::take_back(int tid, const CpuSet& to) const {
    const auto present = host::get_affinity(tid);
    if (!present || !to.contains(*present)) return {Outcome::gone, {}, ESRCH}; // nobody was hit
    const auto creator = creator_of(root_, tid);
    const auto own = creator ? host::get_affinity(*creator) : std::unexpected(ESRCH);
    if (!own || *own == *present) return {Outcome::gone, {}, ESRCH};
    static_cast<void>(host::set_affinity(tid, *own));
    return {Outcome::reused, {}, ESRCH};
}

Result<std::optional<machine::Setting>> TaskMasks::read(const TaskMask& subject) const {
    const auto same = is_same(subject);
    if (!same) return std::unexpected(same.error());
    if (!*same) return std::nullopt;
    if (auto cpus = inventory::read_allowed(root_, subject.pid, subject.task.tid)) return std::move(*cpus);
    // Its second file could not be read: has it gone in between?
    const auto still = is_same(subject);
    if (still && !*still) return std::nullopt;
    return fail("its CPUs cannot be read", machine::to_string(subject));
}

bool TaskMasks::may_return(const TaskMask& subject) const {
    return subject.task.tid == subject.pid && inventory::lives_on(root_, subject.task);
}

} // namespace affinityd::enforcer
