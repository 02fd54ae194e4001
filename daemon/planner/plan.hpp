// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/action.hpp"
#include "planner/place.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace affinityd::planner {

/// Knows which changes are put off for a while: the subject is fought over, or refused the same before.
class BackoffLookup {
  public:
    virtual ~BackoffLookup() = default;
    [[nodiscard]] virtual bool is_put_off(const Action& action) const = 0;
};

/// The input of every plan. Start, full pass, events, `plan`, `explain` and recorded machines all use it,
/// so that what `plan` lists is what the next pass does. All references must outlive it.
struct Planning {
    const Placements& placements;
    Assignments& assignments; ///< a copy of the daemon's, where looking must not assign anything
    const UndoLookup& undo;
    const BackoffLookup* backoff = nullptr; ///< null: nothing is put off
};

/// The decision about one thread.
struct ThreadPlan {
    enum class State : std::uint8_t {
        unwanted,   ///< no policy wants it, and we did nothing to it
        in_place,   ///< has what it should have
        changes,    ///< `action` says what is to be done
        put_off,    ///< it should be changed, but not now: backoff
        left_alone, ///< under a policy that does not touch it: `untouched` says why
        yielded,    ///< another program changed it after us, and the policy says yield or once
        foreign,    ///< no policy places it any more, but its mask is not ours either: `forget` it
        outside,    ///< the policy's CPUs and those of its cpuset have none in common
        immovable,  ///< a kernel thread that may not be moved
        kept_off,   ///< no policy places it: it has all of its own CPUs that no policy has claimed
    };
    State state = State::unwanted;
    std::optional<Action> action = std::nullopt;
    std::optional<Target> target = std::nullopt;
    std::optional<NoPlace> untouched =
        std::nullopt; ///< why it has no place; no value: it has one, or `prior: keep` left it its own mask
    std::optional<KeptOff> kept_off = std::nullopt; ///< also where it is still to be moved off them
    bool is_by_kernel = false; ///< it is in place, but by the kernel's doing: its record does not say so yet
    bool forget = false;       ///< its undo record is of no use any more: its mask must stay as it is
    bool is_kept = false;      ///< and so its policy says: on_stop: keep
};

/// Decides about one thread. Pure but for the slots in `assignments`. An unchanged thread under unchanged
/// placements gives no action.
[[nodiscard]] ThreadPlan plan_thread(const Planning& planning, const ProcessView& process,
                                     const ThreadView& thread);

/// The same for all threads of a process, in ascending order of their ids; `sink` gets each thread with its
/// plan.
void plan_process(const Planning& planning, const ProcessView& process,
                  std::span<const inventory::Thread> threads,
                  const std::function<void(const inventory::Thread&, const ThreadPlan&)>& sink);

/// Processes with less than a quarter of the CPUs that they may use and have threads for, where neither
/// `cpus` of their policy nor that of a thread rule asks for it.
class NarrowProcesses {
  public:
    /// `has`: the CPUs of its threads together; `cpuset`: those that its control group leaves it, null: all.
    void add(const ResolvedPolicy& resolved, const TaskId& process, std::size_t threads, const CpuSet& has,
             const CpuSet* cpuset);
    [[nodiscard]] std::vector<Problem> problems() const; ///< one for each policy

  private:
    std::map<std::string, std::pair<std::size_t, std::string>> found_; ///< how many, and about the first
};

/// The setting that a target wants of its subject, which is set to `present`, and has this record.
[[nodiscard]] Setting wanted_of(const QueueTarget& target, const UndoPointer& record, const Setting& present,
                                const CpuSet& online);

/// True if an interrupt, steering map or flow table is set to what its target wants, or to what the kernel
/// grants in place of that.
[[nodiscard]] bool is_in_place(const QueueTarget& target, const Setting& present, const UndoLookup& undo,
                               const CpuSet& online);

/// The change that an interrupt, steering map or flow table needs, if any. `present`: what it is set to now.
[[nodiscard]] std::optional<Action> plan_queue(const Planning& planning, const QueueTarget& target,
                                               const Setting& present);

/// True if a subject is set to what we asked for or were granted, compared on online CPUs.
[[nodiscard]] bool is_as_given(const UndoRecord& record, const Setting& present, const CpuSet& online);

/// True if a subject still has what we gave it, so that its original may be restored. `cpuset`: the CPUs that
/// a task's cgroup lets it have; null: all, or not known. When it changes, the kernel cuts masks to it, and
/// gives all of it to a task whose mask has no CPU there.
[[nodiscard]] bool is_still_ours(const UndoRecord& record, const Setting& present, const CpuSet& online,
                                 const CpuSet* cpuset = nullptr);

/// True if a task or an interrupt may use all online CPUs, and those that we gave it have all gone offline:
/// the kernel lets it have the others then.
[[nodiscard]] bool was_widened(const Subject& subject, const UndoRecord& record, const Setting& present,
                               const CpuSet& online);

} // namespace affinityd::planner
