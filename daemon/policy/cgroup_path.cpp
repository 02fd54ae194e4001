// SPDX-License-Identifier: Apache-2.0
#include "policy/cgroup_path.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

namespace affinityd::policy {

namespace {

constexpr std::array<std::string_view, 10> unit_endings{".service", ".scope",  ".socket", ".mount",
                                                        ".swap",    ".device", ".path",   ".automount",
                                                        ".target",  ".timer"};

bool has_name_before(std::string_view text, std::string_view ending) {
    return text.size() > ending.size() && text.ends_with(ending);
}

bool is_slice(std::string_view part) { return has_name_before(part, ".slice"); }

bool is_user_manager(std::string_view part) {
    return part.starts_with("user@") && part.ends_with(".service");
}

bool is_unit(std::string_view part) {
    return std::ranges::any_of(unit_endings, [&](auto ending) { return has_name_before(part, ending); });
}

/// Container ids are 64 hexadecimal digits everywhere; anything shorter is a name.
bool is_id(std::string_view text) {
    return text.size() == 64 &&
           std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::vector<std::string_view> parts_of(std::string_view path) {
    std::vector<std::string_view> parts;
    for (auto part : split(path, '/')) {
        if (part.empty() || part == "." || part == "..") continue;
        if (part.starts_with('_'))
            part.remove_prefix(1); // how systemd marks names that look like kernel files
        if (!part.empty()) parts.push_back(part);
    }
    return parts;
}

std::size_t take_slices(const std::vector<std::string_view>& parts, std::size_t at, CgroupNames& names) {
    for (; at < parts.size() && is_slice(parts[at]); ++at)
        names.slices.emplace_back(parts[at]);
    return at;
}

/// The unit is the first part after the slices; below a user's manager the same again.
void find_unit(const std::vector<std::string_view>& parts, CgroupNames& names) {
    std::size_t at = take_slices(parts, 0, names);
    if (at == parts.size() || !is_unit(parts[at])) return;
    names.unit = parts[at];
    if (!is_user_manager(names.unit)) return;
    const CgroupNames outer = names;
    names.slices.push_back(names.unit);
    at = take_slices(parts, at + 1, names);
    if (at < parts.size() && is_unit(parts[at]))
        names.unit = parts[at];
    else
        names = outer; // the manager itself
}

struct Container {
    std::string_view id; ///< in the table below: what stands before it
    std::string_view runtime;
};

/// "docker-ID.scope" and the like: what the systemd cgroup drivers make. Conmon's own scopes
/// ("libpod-conmon-ID", "crio-conmon-ID") hold the monitor, not the container, and fail is_id.
constexpr std::array<Container, 5> scope_prefixes{{{"docker-", "docker"},
                                                   {"libpod-", "podman"},
                                                   {"cri-containerd-", "containerd"},
                                                   {"nerdctl-", "containerd"},
                                                   {"crio-", "crio"}}};

std::optional<Container> container_at(const std::vector<std::string_view>& parts, std::size_t at) {
    const auto part = parts[at];
    const auto name = part.ends_with(".scope") ? part.substr(0, part.size() - 6) : part;
    for (const auto& [prefix, runtime] : scope_prefixes)
        if (name.starts_with(prefix) && is_id(name.substr(prefix.size())))
            return Container{name.substr(prefix.size()), runtime};
    // containerd without its systemd driver on a systemd path: "kubepods-...-podUID.slice:cri-containerd:ID"
    if (const auto colon = name.rfind(":cri-containerd:");
        colon != std::string_view::npos && is_id(name.substr(colon + 16)))
        return Container{name.substr(colon + 16), "containerd"};
    const auto before = at > 0 ? parts[at - 1] : std::string_view();
    if (part.starts_with("lxc.payload.") && part.size() > 12) return Container{part.substr(12), "lxc"};
    if (before == "lxc" || before == "lxc.payload") return Container{part, "lxc"};
    if (part.starts_with("systemd-nspawn@") && has_name_before(part.substr(15), ".service"))
        return Container{part.substr(15, part.size() - 15 - 8), "nspawn"};
    // A bare id below a folder: the cgroupfs drivers.
    if (!is_id(part)) return std::nullopt;
    if (before == "docker" || (at > 1 && parts[at - 2] == "ecs")) return Container{part, "docker"};
    if (before == "libpod_parent" || before.starts_with("libpod_pod_")) return Container{part, "podman"};
    return Container{part, {}}; // Kubernetes: the path does not say which runtime
}

/// How many parts, from the first, only root can have named.
std::size_t count_systems(const std::vector<std::string_view>& parts) {
    bool is_users = false; // inside user.slice, where every unit is a user's
    for (std::size_t at = 0; at < parts.size(); ++at) {
        is_users = is_users || parts[at] == "user.slice";
        // A scope is what a machine's guest or a session's user has for himself.
        const bool is_end =
            is_user_manager(parts[at]) || parts[at].ends_with(".scope") || (is_users && !is_slice(parts[at]));
        if (is_end || container_at(parts, at)) return at + 1;
    }
    return parts.size();
}

CgroupNames names_of(const std::vector<std::string_view>& parts) {
    CgroupNames names;
    find_unit(parts, names);
    for (std::size_t at = parts.size(); at-- > 0 && names.container_id.empty();)
        if (const auto found = container_at(parts, at)) {
            names.container_id = found->id;
            names.container_runtime = found->runtime;
        }
    return names;
}

} // namespace

CgroupNames parse_cgroup_path(std::string_view path) { return names_of(parts_of(path)); }

CgroupNames system_cgroup_names(std::string_view path) {
    auto parts = parts_of(path);
    parts.resize(count_systems(parts));
    return names_of(parts);
}

std::optional<std::pair<std::string, std::string>> find_fence(std::string_view cgroup) {
    auto unit = parse_cgroup_path(cgroup).unit;
    const bool has_processes = unit.ends_with(".service") || unit.ends_with(".scope");
    const bool is_users = cgroup.find("/user@") != std::string_view::npos;
    const auto at = cgroup.find("/" + unit);
    if (!has_processes || is_users || unit == "init.scope" || at == std::string_view::npos)
        return std::nullopt;
    auto folder = std::string(cgroup.substr(0, at + 1 + unit.size()));
    return std::pair(std::move(unit), std::move(folder));
}

} // namespace affinityd::policy
