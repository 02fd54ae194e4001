// SPDX-License-Identifier: Apache-2.0
#include "measure/program.hpp"

#include "host/self.hpp"

#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::measure {

namespace {

/// Seen from sbin, from bin, from libexec/affinityd (where affinityctl's verbs are), and from the build's
/// folders.
constexpr const char* places[] = {"", "../bin/", "../../bin/", "../affinity-ttcp/",
                                  "../tools/affinity-ttcp/"};

bool can_run(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

} // namespace

std::optional<std::string> find_ttcp() { return find_ttcp(host::program_folder()); }

std::optional<std::string> find_ttcp(const std::string& folder) {
    if (folder.empty()) return std::nullopt; // the places are relative to it, not to the working folder
    for (const char* place : places)
        if (std::string path = folder + place + "affinity-ttcp"; can_run(path)) return path;
    return std::nullopt;
}

} // namespace affinityd::measure
