// SPDX-License-Identifier: Apache-2.0
#include "inventory/cgroup.hpp"

namespace affinityd::inventory {

std::string cgroup_of(std::string_view text) {
    std::string_view unified;
    std::string_view systemd;
    while (!text.empty()) {
        const auto end = text.find('\n');
        const auto line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        // "HIERARCHY:CONTROLLERS:PATH"; the path may hold colons
        const auto first = line.find(':');
        const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
        if (second == std::string_view::npos) continue;
        const auto controllers = line.substr(first + 1, second - first - 1);
        const auto path = line.substr(second + 1);
        if (controllers.empty() && line.substr(0, first) == "0") unified = path;
        if (controllers == "name=systemd") systemd = path;
    }
    if (unified.starts_with('/') && unified != "/") return std::string(unified);
    if (systemd.starts_with('/')) return std::string(systemd);
    return "/";
}

} // namespace affinityd::inventory
