// SPDX-License-Identifier: Apache-2.0
#include "app/unit_place.hpp"

#include "policy/cgroup_path.hpp"

namespace affinityd::app {

std::optional<UnitPlace> find_unit(std::string_view cgroup) {
    const auto unit = policy::parse_cgroup_path(cgroup).unit;
    const bool has_processes = unit.ends_with(".service") || unit.ends_with(".scope");
    const bool is_users = cgroup.find("/user@") != std::string_view::npos;
    if (!has_processes || is_users || unit == "init.scope") return std::nullopt;
    const auto at = cgroup.find("/" + unit);
    if (at == std::string_view::npos) return std::nullopt; // escaped in the path: not seen with real units
    return UnitPlace{unit, std::string(cgroup.substr(0, at + 1 + unit.size()))};
}

} // namespace affinityd::app
