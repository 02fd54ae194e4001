// SPDX-License-Identifier: Apache-2.0
// This is installed as affinityctl. The program with all verbs needs a dozen libraries, and loading them
// takes longer than reading a machine. Scripts often ask for `topology --json`, so this program answers that
// itself. Anything else, unusual options included, goes to the program with all verbs, which is beside this
// one or in libexec.
#include "affinityctl/offline/topology_answer.hpp"
#include "affinityctl/present/globals.hpp"
#include "host/root.hpp"
#include "host/self.hpp"
#include "topology/reader.hpp"

#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include <unistd.h>

namespace {

/// The root folder if this is `topology --json` with at most `--root DIR`; no value for anything else.
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

/// The exit code, or -1 after a fault: the program with all verbs then says what is wrong.
int print_topology(const std::string& path) {
    const auto root = affinityd::host::Root::open(path);
    if (!root) return -1;
    const auto topology = affinityd::topology::read_topology(*root);
    if (!topology) return -1;
    const std::string text = affinityctl::dump(affinityctl::topology_json(*topology)) + "\n";
    const bool is_taken = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    return affinityctl::end_output(0, is_taken ? 0 : errno);
}

} // namespace

int main(int argc, char** argv) {
    affinityctl::hold_standard_streams();
    if (const auto root = plain_topology(argc, argv))
        if (const int status = print_topology(*root); status >= 0) return status;
    const std::string folder = affinityd::host::program_folder();
    for (const char* beside : {"affinityctl-verbs", "../libexec/affinityd/affinityctl-verbs"})
        ::execv((folder + beside).c_str(), argv);
    std::perror("affinityctl: cannot start affinityctl-verbs");
    return 1;
}
