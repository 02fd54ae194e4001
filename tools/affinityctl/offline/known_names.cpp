// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/known_names.hpp"

#include "host/root.hpp"

#include <filesystem>
#include <string_view>

namespace affinityctl {

affinityd::planner::KnownNames read_known_names(const affinityd::host::Root& root) {
    affinityd::planner::KnownNames names;
    const auto passwd = root.etc().text("passwd").value_or("");
    for (std::string_view rest = passwd; !rest.empty();) {
        const auto line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        if (const auto colon = line.find(':'); colon != std::string_view::npos && colon > 0)
            names.users.emplace_back(line.substr(0, colon));
    }
    if (!root.is_live()) return names;
    namespace fs = std::filesystem;
    for (const char* folder :
         {"/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}) {
        std::error_code code;
        for (fs::directory_iterator at(folder, code); !code && at != fs::directory_iterator();
             at.increment(code))
            names.units.push_back(at->path().filename().string());
    }
    return names;
}

} // namespace affinityctl
