// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"

#include <expected>
#include <functional>
#include <string>

namespace affinityd::enforcer {

/// The AllowedCPUs= of systemd's units, read and set without waiting. What is set is a runtime property, so
/// it ends with the next boot at the latest. Source: org.freedesktop.systemd1(5),
/// systemd.resource-control(5).
class UnitProperties {
  public:
    virtual ~UnitProperties() = default;

    /// What the unit is set to; the empty set if it is not set, so that it may use all CPUs. Also for a unit
    /// that is not loaded. The error: an errno value, ETIMEDOUT if systemd does not answer in time, ENOTCONN
    /// if it cannot be reached, EINVAL for kinds of units without processes.
    using Read = std::move_only_function<void(std::expected<CpuSet, int>)>;
    /// An errno value, 0 on success, ENOENT if there is no such unit. After ETIMEDOUT, ENOTCONN or ECONNRESET
    /// the unit may have been set or not.
    using Written = std::move_only_function<void(int)>;

    /// Both call `done` once, within the call or later from the loop, after a bounded time; never after this
    /// has ended.
    virtual void read(const std::string& unit, Read done) = 0;
    /// The empty set takes the setting away.
    virtual void write(const std::string& unit, const CpuSet& cpus, Written done) = 0;
};

/// True if it is not known what became of a call that ended with this errno value.
[[nodiscard]] bool is_without_answer(int code);

} // namespace affinityd::enforcer
