// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"

#include <expected>
#include <functional>
#include <memory>
#include <string>

typedef struct sd_bus sd_bus;

namespace affinityd::enforcer {

struct CloseBus {
    void operator()(sd_bus* bus) const;
};
using BusHandle = std::unique_ptr<sd_bus, CloseBus>;

/// The AllowedCPUs= of systemd's units, asked for and set over D-Bus: org.freedesktop.systemd1(5). What is
/// set is a runtime property: it ends with the next boot at the latest. Each call makes a connection of its
/// own and waits at most two seconds.
class UnitCpus {
  public:
    /// How to reach systemd; by default over the system bus. nullptr and an errno value if it cannot be
    /// reached.
    using Connect = std::function<std::expected<BusHandle, int>()>;
    explicit UnitCpus(Connect connect = system_bus) : connect_(std::move(connect)) {}

    /// What the unit is set to, the empty set if to nothing (it may use all). The error: an errno value,
    /// ENOENT for a unit that is not loaded.
    [[nodiscard]] std::expected<CpuSet, int> read(const std::string& unit) const;
    /// The empty set takes the setting away. An errno value, 0 on success.
    [[nodiscard]] int write(const std::string& unit, const CpuSet& cpus) const;

    static std::expected<BusHandle, int> system_bus();

  private:
    Connect connect_;
};

/// A set as systemd has it: one bit per CPU, the lowest CPU in the lowest bit of the first byte.
[[nodiscard]] std::string to_unit_bytes(const CpuSet& cpus);
[[nodiscard]] CpuSet from_unit_bytes(std::string_view bytes);

} // namespace affinityd::enforcer
