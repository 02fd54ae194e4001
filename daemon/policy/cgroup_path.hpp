// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityd::policy {

/// The unit and container that a control-group path names.
struct CgroupNames {
    std::string unit; ///< systemd unit, the user manager's own one where there is one; "": none
    std::vector<std::string>
        slices; ///< slices around it, outermost first; for a user unit also "user@UID.service"
    std::string
        container_id; ///< id (64 hex digits) or name (LXC, nspawn) of the innermost container; "": none
    std::string container_runtime; ///< docker, podman, containerd, crio, lxc, nspawn; "": unknown
    friend bool operator==(const CgroupNames&, const CgroupNames&) = default;
};

/// Reads a path as /proc/PID/cgroup prints it ("/system.slice/nginx.service"). Any bytes are accepted; what
/// is not recognised leaves its field empty. Names are unescaped as systemd does (one leading '_'), never
/// further: units keep their "\x2d". Source: systemd src/basic/cgroup-util.c for units; the runtimes'
/// documented cgroup drivers for ids.
[[nodiscard]] CgroupNames parse_cgroup_path(std::string_view path);

/// The same, of the names alone that only root can have given: what is below a session, a user's manager
/// (user@UID.service) or a container is left out, because users make control groups of any name there.
[[nodiscard]] CgroupNames system_cgroup_names(std::string_view path);

/// The systemd unit of a process and that unit's control group, from a path as /proc/PID/cgroup has it. No
/// value: the process is in no unit whose AllowedCPUs= this machine's systemd could set: units of users
/// belong to other managers, and slices and init.scope are never fenced.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> find_fence(std::string_view cgroup);

} // namespace affinityd::policy
