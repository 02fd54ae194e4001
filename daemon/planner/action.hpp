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
#include <utility>
#include <vector>

namespace affinityd::planner {

/// A placement of a policy, whose slots are distributed. The name survives re-plans and reloads.
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

/// A task is kept off CPUs that it could have otherwise, as others have claimed them.
struct KeptOff {
    CpuSet cpus;
    std::vector<std::string> by; ///< policies with `exclusive: true`
};

/// Why an action was chosen.
struct Reason {
    Reason() = default;
    Reason(const char* why) : text(why) {}
    Reason(std::string why, std::optional<unsigned> of_queue = {}) : text(std::move(why)), queue(of_queue) {}
    explicit Reason(const KeptOff& kept_off);

    std::string text;              ///< for people
    std::optional<unsigned> queue; ///< of a NIC, on whose lane its interrupt or thread is; no value: of none,
                                   ///< or the kernel does not tell which one
    std::vector<std::string> claimants; ///< policies off whose CPUs a task is kept; empty: it is not kept off
};

/// The original is restored: no policy wants it any more.
inline constexpr const char* unwanted = "no policy wants it any more: its own mask back";
/// The same as a person, or the end of the daemon, asks for it.
inline constexpr const char* put_back = "put back";

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
using machine::KernelMask;
using machine::Setting;
using machine::SteeringMask;
using machine::Subject;
using machine::TaskMask;
using machine::UnitCpuset;

/// A wanted change: from what it is to what it shall be, and why. Every line of a plan is one of these.
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
