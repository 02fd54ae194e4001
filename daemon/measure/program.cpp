// SPDX-License-Identifier: Apache-2.0
#include "measure/program.hpp"

#include "host/scheduler.hpp"
#include "host/self.hpp"

#include <csignal>
#include <nlohmann/json.hpp>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::measure {

std::vector<std::string> options_of(const Request& request) {
    std::vector<std::string> words;
    if (request.target.empty())
        words.emplace_back("--loopback");
    else
        words.insert(words.end(), {"--target", request.target});
    words.insert(words.end(), {"--seconds", std::to_string(request.duration.count()), "--json"});
    if (request.bytes > 0) words.insert(words.end(), {"--bytes", std::to_string(request.bytes)});
    if (request.skip_if_busier)
        words.insert(words.end(), {"--idle-only", std::to_string(*request.skip_if_busier)});
    return words;
}

std::string to_line(const std::vector<std::string>& options) {
    using nlohmann::json;
    return json(options).dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<std::vector<std::string>> from_line(std::string_view line) {
    const auto value = nlohmann::json::parse(line, nullptr, false);
    std::vector<std::string> options;
    if (!value.is_array()) return fail("not a JSON array of options");
    for (const auto& word : value) {
        if (!word.is_string()) return fail("an option that is no string");
        options.push_back(word.get<std::string>());
    }
    return options;
}

std::chrono::seconds time_limit(const Request& request) {
    return 2 * request.duration + std::chrono::seconds(20);
}

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

CpuSet everywhere() {
    const std::vector<std::uint64_t> words((CpuSet::max_cpu + 1) / 64, ~std::uint64_t{0});
    return CpuSet::from_words(words);
}

bool lower_self(pid_t parent) {
    ::setpriority(PRIO_PROCESS, 0, 10);
    // A child that cannot leave the daemon's CPUs still measures.
    static_cast<void>(host::set_affinity(0, everywhere()));
    if (!host::drop_privileges()) return false;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL); // after the change of user, which clears it
    return ::getppid() == parent;       // else it died before the line above
}

} // namespace affinityd::measure
