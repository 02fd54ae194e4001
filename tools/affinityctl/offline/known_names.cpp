// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/known_names.hpp"

#include "host/root.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>

namespace affinityctl {

namespace {

namespace fs = std::filesystem;

constexpr std::array unit_folders{"/usr/lib/systemd/system", "/lib/systemd/system", "/run/systemd/system",
                                  "/etc/systemd/system"};

/// The last assignment of a file counts; an empty one takes back those before it.
void read_affinity(const fs::path& file, std::string& value) {
    constexpr std::string_view key = "CPUAffinity=";
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(key)) value = line.substr(key.size());
}

} // namespace

std::string unit_affinity(const std::string& unit) {
    std::vector<std::string> names{unit};
    if (const auto at = unit.find('@'), dot = unit.rfind('.'); at < dot && dot != std::string::npos)
        names.insert(names.begin(), unit.substr(0, at + 1) + unit.substr(dot));
    std::string value;
    for (const auto& name : names)
        for (const char* folder : unit_folders)
            read_affinity(fs::path(folder) / name, value);
    for (const auto& name : names)
        for (const char* folder : unit_folders) {
            std::error_code code;
            std::set<fs::path> files;
            for (fs::directory_iterator at(fs::path(folder) / (name + ".d"), code);
                 !code && at != fs::directory_iterator(); at.increment(code))
                if (at->path().extension() == ".conf") files.insert(at->path());
            for (const auto& file : files)
                read_affinity(file, value);
        }
    return value;
}

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
    for (const char* folder : unit_folders) {
        std::error_code code;
        for (fs::directory_iterator at(folder, code); !code && at != fs::directory_iterator();
             at.increment(code))
            names.units.push_back(at->path().filename().string());
    }
    return names;
}

} // namespace affinityctl
