// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace affinityd::inventory {

/// The path that says to which unit or container a process belongs, from the text of /proc/PID/cgroup: the
/// unified hierarchy's if it is not the root there, else systemd's own hierarchy's (hosts with cgroup v1 or
/// both), else "/". cgroups(7).
[[nodiscard]] std::string cgroup_of(std::string_view text);

} // namespace affinityd::inventory
