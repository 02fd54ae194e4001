// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace affinityd::app {

/// The systemd unit that a process lives in, and that unit's control group.
struct UnitPlace {
    std::string unit;   ///< "nginx.service"
    std::string folder; ///< "/system.slice/nginx.service"
    friend bool operator==(const UnitPlace&, const UnitPlace&) = default;
};

/// Reads a path as /proc/PID/cgroup has it. No value: the process is in no unit whose AllowedCPUs= this
/// machine's systemd could set: units of users belong to other managers, and slices and init.scope are never
/// fenced.
[[nodiscard]] std::optional<UnitPlace> find_unit(std::string_view cgroup);

} // namespace affinityd::app
