// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"

#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
#include <list>
#include <string>
#include <string_view>

typedef struct sd_bus sd_bus;

namespace affinityd::behaviours {

/// True if it is not known what became of a call that ended with this errno value.
[[nodiscard]] bool is_without_answer(int code);

/// The AllowedCPUs= of the units of the systemd that runs this machine, read and set over its D-Bus interface
/// without waiting. A set one is a runtime property, so it ends with the next boot at the latest. Source:
/// org.freedesktop.systemd1(5), systemd.resource-control(5).
class UnitCpus {
  public:
    /// The CPUs that the unit is set to; the empty set if it is not set, so that it may use all CPUs. Also
    /// for a unit that is not loaded. The error: an errno value, ETIMEDOUT if systemd does not answer in
    /// time, ENOTCONN if it cannot be reached, EINVAL for kinds of units without processes.
    using Read = std::move_only_function<void(std::expected<CpuSet, int>)>;
    /// An errno value, 0 on success, ENOENT if there is no such unit. After ETIMEDOUT, ENOTCONN or ECONNRESET
    /// the unit may have been set or not.
    using Written = std::move_only_function<void(int)>;
    /// The connection over which systemd is called; nullptr while there is none. The owner lets the
    /// connection work from the loop.
    using Connection = std::function<sd_bus*()>;
    /// `patience`: how long systemd has for an answer.
    explicit UnitCpus(Connection connection, std::chrono::milliseconds patience = std::chrono::seconds(5));
    UnitCpus(const UnitCpus&) = delete;
    UnitCpus& operator=(const UnitCpus&) = delete;
    ~UnitCpus();

    /// Both call `done` once, within the call or later from the loop, after a bounded time; never after this
    /// has ended.
    void read(const std::string& unit, Read done);
    /// The empty set takes the setting away.
    void write(const std::string& unit, const CpuSet& cpus, Written done);

    [[nodiscard]] std::size_t calls_under_way() const;

  private:
    struct Call;
    void send(Call call);

    Connection connection_;
    std::chrono::milliseconds patience_;
    std::list<Call> calls_; ///< those that wait for a reply
};

/// A set as systemd has it: one bit per CPU, the lowest CPU in the lowest bit of the first byte.
[[nodiscard]] std::string to_unit_bytes(const CpuSet& cpus);
[[nodiscard]] CpuSet from_unit_bytes(std::string_view bytes);

} // namespace affinityd::behaviours
