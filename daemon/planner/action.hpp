// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "machine/subject.hpp"
#include "policy/policy.hpp"

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace affinityd::planner {

/// One placement of one policy, whose slots are distributed. The name survives re-plans and reloads.
struct DistributionId {
    enum class Kind : std::uint8_t {
        slots,     ///< the plain slots
        lanes,     ///< the lanes of an interface
        all_lanes, ///< the lanes of all interfaces of the policy
        groups,    ///< whole processes over the groups that they stay in
        in_group,  ///< the slots inside a group
        whole,     ///< all CPUs of the policy, for processes that still settle: nothing is distributed
    };
    std::string policy;
    unsigned rule = 0; ///< 0: the policy's own placement; i + 1: its thread rule i
    std::string among; ///< of lanes: the interface; in a group: its first CPU; else ""
    Kind kind = Kind::slots;
    friend auto operator<=>(const DistributionId&, const DistributionId&) = default;
};

/// The group of a task whose policy says `measured`.
struct Measured {
    CpuSet group;
    double ns = 0;           ///< for one way within it; 0: by cache
    bool is_foreign = false; ///< latencies are kept, but of another machine
};

/// A task sits in a slot of a distribution.
struct InSlot {
    unsigned rule = 0; ///< 0: the policy's own placement; i + 1: its thread rule i
    DistributionId::Kind kind = DistributionId::Kind::slots;
    std::string nics; ///< whose lanes they are; else ""
    CpuSet slot;
    policy::Bind bind = policy::Bind::llc;
    std::optional<Measured> measured = std::nullopt; ///< its place goes by that
};

/// A new process may use all CPUs of its policy until it has settled.
struct Settling {
    CpuSet cpus;
};

/// A queue's interrupt, or the kernel thread that does its work, is on the queue's lane.
struct OnLane {
    policy::Model model = policy::Model::full;
    std::string nic;
    std::optional<unsigned> queue; ///< no value: the kernel does not tell which one
    CpuSet lane;
    std::string near; ///< the interface, or one with the same lanes, that these are near to; "": none
    CpuSet apart;     ///< with `separate`: where the interrupts go instead; else empty
};

/// A steering map or flow table serves the lanes.
enum class Steering {
    xps_lane,    ///< sent from the CPUs of its lane
    rps_off,     ///< RPS would carry packets away from the lane
    rfs_queue,   ///< RFS brings packets to the lane of the task that reads
    rfs_machine, ///< the machine's flow table, where RPS is used
    rfs_flows,   ///< RFS brings packets to the lane of the task that reads, as the policy asks for
    named_irq,   ///< no steering: an interrupt that the policy names, on one of its CPUs
    accept,      ///< a listener gets the connections that arrive on its worker's lane
};

/// RPS serves lanes, of which there are more than receive queues.
struct RpsSpread {
    std::size_t queues = 0;
    std::size_t lanes = 0;
};

/// A task is kept off CPUs that it could have otherwise, as others have claimed them.
struct KeptOff {
    CpuSet cpus;
    std::vector<std::string> by; ///< policies with `exclusive: true`
};

/// An original is restored.
enum class Restored {
    unwanted,   ///< no policy wants it any more
    left_alone, ///< its policy leaves it alone now
    asked_for,  ///< a person or the end of the daemon asked for it
};

/// All processes of a unit are under a policy with `means: cpuset`.
struct FencedUnit {};

/// Why an action was chosen, as a value: it is made into text only when a person asks.
using Reason = std::variant<InSlot, Settling, OnLane, Steering, RpsSpread, KeptOff, Restored, FencedUnit>;

/// For people. `policy`: the name of the policy that the action is for; "" for none.
[[nodiscard]] std::string to_string(const Reason& reason, const std::string& policy);

/// The record of a subject that we changed and have not put back yet.
struct UndoRecord {
    machine::Setting original; ///< before our first change
    machine::Setting asked;    ///< what we asked for last
    machine::Setting granted;  ///< what the kernel made of it; equals `asked` until it was read back
    std::string policy;        ///< on whose behalf
    /// The value it was set to before the last change, if that was ours, too: a program may set again what it
    /// read earlier. Until the change is confirmed also the original: the daemon may be killed in between.
    std::optional<machine::Setting> before = std::nullopt;
    friend bool operator==(const UndoRecord&, const UndoRecord&) = default;
};
/// A record travels from the look at its subject to the write and back; null: we have not changed the
/// subject.
using UndoPointer = std::shared_ptr<const UndoRecord>;

/// Looks up the undo record of a subject.
class UndoLookup {
  public:
    virtual ~UndoLookup() = default;
    [[nodiscard]] virtual UndoPointer find(const machine::Subject& subject) const = 0;
};

using machine::FlowCount;
using machine::FlowTable;
using machine::IrqMask;
using machine::Setting;
using machine::SteeringMask;
using machine::Subject;
using machine::TaskMask;
using machine::UnitCpuset;

/// One wanted change: from what it is to what it shall be, and why. Every line of a plan is one of these.
struct Action {
    Subject subject;
    Setting from;       ///< as read
    Setting to;         ///< never empty for tasks and interrupts; an empty steering map is "off"
    std::string policy; ///< the policy that asks for it; "" for restoring an original
    Reason reason;
    bool restore = false; ///< restores the original: no policy wants the subject any more
    UndoPointer record{}; ///< of the subject, as it was planned with
};

/// Something that was asked for and cannot be had on this machine now.
struct Problem {
    std::string policy;
    std::string subject; ///< what it concerns: an interface, an expression, a task
    std::string message;
    std::string hint = {}; ///< what a person can do about it, a command where there is one; ""
    friend bool operator==(const Problem&, const Problem&) = default;
};

} // namespace affinityd::planner
