// SPDX-License-Identifier: Apache-2.0
#include "measure/program.hpp"

#include "host/self.hpp"

#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::measure {

std::optional<std::string> find_ttcp() {
    const std::string folder = host::program_folder();
    for (const char* place : {"", "../bin/", "../affinity-ttcp/", "../tools/affinity-ttcp/"}) {
        const std::string path = folder + place + "affinity-ttcp";
        struct stat status {};
        if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
            ::access(path.c_str(), X_OK) == 0)
            return path;
    }
    return std::nullopt;
}

} // namespace affinityd::measure
