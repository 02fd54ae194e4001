// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/task_id.hpp"
#include "netdev/nic.hpp"

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace affinityd::machine {

// The things that can be given CPUs, by identities that are not used twice. Two subjects are equal if they
// are the same thing. Fields that are "not part of the identity" say where it was last seen and what people
// call it.

/// A thread's CPU mask, sched_setaffinity(2).
struct TaskMask {
    TaskId task;
    int pid = 0;      ///< its process; not part of the identity
    std::string comm; ///< its name when it was read; not part of the identity
    friend bool operator==(const TaskMask& a, const TaskMask& b) { return a.task == b.task; }
};

/// An interrupt's CPU mask, /proc/irq/N/smp_affinity. Numbers are reused after a driver reload, so the number
/// is looked up again before each write. Some drivers (bcmgenet, stmmac) give two lines of one device the
/// same label: these are told apart by their order.
///
/// A line that devices may share (PCI's INTx) has one mask for all of them, whichever have a handler on it
/// now. The board's wiring fixes the number, which is the line's identity.
struct IrqMask {
    std::string device;   ///< device path below /sys, or the chip's PCI function, or ""
    std::string label;    ///< name of the handler: "eth0-TxRx-3"
    unsigned ordinal = 0; ///< place among the device's lines of this label, by ascending number
    unsigned irq = 0;     ///< its number when it was read; not part of the identity, except of a line
    bool is_line = false; ///< such a line: device and label are those of one that uses it, and no part of the
                          ///< identity
    friend bool operator==(const IrqMask& a, const IrqMask& b) {
        if (a.is_line || b.is_line) return a.is_line == b.is_line && a.irq == b.irq;
        return a.device == b.device && a.label == b.label && a.ordinal == b.ordinal;
    }
};

using netdev::Direction;

/// The steering map of a queue: rps_cpus of a receive queue, xps_cpus of a transmit queue.
/// Source: Documentation/networking/scaling.rst.
struct SteeringMask {
    std::string device; ///< device path below /sys; for virtual interfaces the interface name
    Direction direction = Direction::rx;
    unsigned queue = 0;
    std::string nic;          ///< interface name when it was read; not part of the identity
    unsigned ifindex = 0;     ///< the interface's number, 0: not known; part of the identity of a port only
    bool is_port = false;     ///< the device has several interfaces, which the number tells apart
    std::uint64_t folder = 0; ///< netdev::NicLink::folder; not part of the identity
    [[nodiscard]] unsigned port() const { return is_port ? ifindex : 0; }
    friend bool operator==(const SteeringMask& a, const SteeringMask& b) {
        return a.device == b.device && a.direction == b.direction && a.queue == b.queue &&
               a.port() == b.port();
    }
};

/// How many flows a receive queue remembers (rps_flow_cnt), or the whole machine does (rps_sock_flow_entries,
/// where `device` is empty). Source: Documentation/networking/scaling.rst, RFS.
struct FlowTable {
    std::string device;   ///< as for SteeringMask; "" for the machine's table
    unsigned queue = 0;   ///< receive queue; 0 for the machine's table
    std::string nic;      ///< interface name when it was read; not part of the identity
    unsigned ifindex = 0; ///< as for SteeringMask
    bool is_port = false;
    std::uint64_t folder = 0;
    [[nodiscard]] unsigned port() const { return is_port ? ifindex : 0; }
    [[nodiscard]] bool is_machine() const { return device.empty(); }
    friend bool operator==(const FlowTable& a, const FlowTable& b) {
        return a.device == b.device && a.queue == b.queue && a.port() == b.port();
    }
};

/// The AllowedCPUs= of a systemd unit.
struct UnitCpuset {
    std::string unit; ///< "nginx.service"
    friend bool operator==(const UnitCpuset&, const UnitCpuset&) = default;
};

/// A mask of the machine's own, for what has none of its own.
struct KernelMask {
    enum class Of : std::uint8_t {
        interrupts, ///< that are requested from now on: default_smp_affinity
        work ///< of workqueues that are bound to no CPU; each may have a mask of its own inside this one
    };
    Of of = Of::interrupts;
    friend bool operator==(const KernelMask&, const KernelMask&) = default;
};

using Subject = std::variant<TaskMask, IrqMask, SteeringMask, FlowTable, UnitCpuset, KernelMask>;

/// Entries of a flow table; 0 is off.
struct FlowCount {
    std::uint32_t entries = 0;
    friend auto operator<=>(const FlowCount&, const FlowCount&) = default;
};

/// The value of a subject: entries for a FlowTable, CPUs for everything else. For a steering map the empty
/// set is "off", for a unit "not set".
class Setting {
  public:
    Setting() = default;
    Setting(CpuSet cpus) : value_(std::move(cpus)) {} // NOLINT: a mask is a setting
    Setting(FlowCount count) : value_(count) {}       // NOLINT: and so is a count

    [[nodiscard]] bool is_cpus() const { return std::holds_alternative<CpuSet>(value_); }
    /// The CPUs; the empty set if this is a count.
    [[nodiscard]] const CpuSet& cpus() const;
    /// 0 if these are CPUs.
    [[nodiscard]] FlowCount count() const;
    /// "0-3", or "32768"; the empty set is "".
    [[nodiscard]] std::string to_string() const;

    friend bool operator==(const Setting&, const Setting&) = default;

  private:
    std::variant<CpuSet, FlowCount> value_;
};

/// "task 123 (nginx)", "IRQ 45 (eth0-TxRx-3)", "eth0 tx-3", "eth0 rx-0-flows"; for logs and
/// tables.
[[nodiscard]] std::string to_string(const Subject& subject);

/// True for interrupts, steering maps, flow tables and masks of the kernel.
[[nodiscard]] bool is_queue(const Subject& subject);

} // namespace affinityd::machine

template <>
struct std::hash<affinityd::machine::Subject> {
    std::size_t operator()(const affinityd::machine::Subject& subject) const noexcept;
};
