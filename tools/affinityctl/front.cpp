// SPDX-License-Identifier: Apache-2.0
// What is installed as affinityctl. The program with all verbs needs a dozen libraries, and loading them
// takes longer than reading a machine does; scripts ask for `topology --json` often. So that one is answered
// here, and anything else, unusual options included, goes on to the whole program, which lies beside this one
// or in libexec.
#include "affinityctl/views/topology/json.hpp"
#include "host/root.hpp"
#include "topology/reader.hpp"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <limits.h>
#include <sys/auxv.h>
#include <unistd.h>

namespace {

/// The root folder if this is `topology --json` with no more than `--root DIR`; nothing if it is anything
/// else.
std::optional<std::string> plain_topology(int argc, char** argv) {
    std::string root = "/";
    bool verb = false;
    bool json = false;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "topology" && !verb)
            verb = true;
        else if (word == "--json" && !json)
            json = true;
        else if (word == "--root" && i + 1 < argc && argv[i + 1][0] != '-')
            root = argv[++i];
        else
            return std::nullopt;
    }
    return verb && json ? std::optional(root) : std::nullopt;
}

/// 0, or -1 if the plain way does not lead there; the whole program then says what is wrong.
int print_topology(const std::string& path) {
    const auto root = affinityd::host::Root::open(path);
    if (!root) return -1;
    const auto topology = affinityd::topology::read_topology(*root, affinityd::topology::Detail::shape);
    if (!topology) return -1;
    const std::string text = affinityctl::topology_json(*topology) + "\n";
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0 ? 0
                                                                                                       : 1;
}

} // namespace

int main(int argc, char** argv) {
    if (const auto root = plain_topology(argc, argv))
        if (const int status = print_topology(*root); status >= 0) return status;
    char self[PATH_MAX];
    const auto* started_as = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
    if (started_as == nullptr || ::realpath(started_as, self) == nullptr) {
        std::perror("affinityctl: cannot find its own folder");
        return 1;
    }
    const std::string folder = std::string(self).substr(0, std::string_view(self).rfind('/') + 1);
    for (const char* beside : {"affinityctl-verbs", "../libexec/affinityd/affinityctl-verbs"})
        ::execv((folder + beside).c_str(), argv);
    std::perror("affinityctl: cannot start affinityctl-verbs");
    return 1;
}
