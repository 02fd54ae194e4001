// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/policy_set.hpp"

#include "accounting/measurements.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/escape.hpp"
#include "host/fd.hpp"
#include "host/file.hpp"
#include "host/root.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityctl {

namespace {

namespace policy = affinityd::policy;
namespace topology = affinityd::topology;
using affinityd::machine::KnownLatencies;
using Findings = std::vector<policy::Diagnostic>;

/// Tells all findings; an error in a file that `is_ours` is a failure.
policy::PolicySet set_of(const std::vector<policy::Document>& documents, Findings findings,
                         const std::function<bool(const std::string& path)>& is_ours) {
    auto read = policy::read_policies(documents);
    std::ranges::move(read.diagnostics, std::back_inserter(findings));
    bool is_faulty = false;
    for (const auto& finding : findings) {
        fmt::print(stderr, "{}\n", policy::to_string(finding, true));
        is_faulty = is_faulty || (finding.severity == policy::Severity::error && is_ours(finding.at.file));
    }
    if (is_faulty) throw CallError{exit_findings, "the policies have errors"};
    return std::move(read.set);
}

/// The latencies that the daemon would use here; none for a user who may not read them.
KnownLatencies measured_here(const affinityd::host::Root& root, const topology::Topology& machine) {
    const auto kept = affinityd::accounting::newest_experiment("/var/lib/affinityd", "latency");
    if (!kept || !*kept) return {};
    const auto latencies = topology::latencies_from_json((*kept)->detail);
    if (!latencies) return {};
    return affinityd::machine::latencies_here(*latencies, machine, topology::read_cpu_model(root));
}

/// The content of a file, a pipe or, for "-", standard input.
affinityd::Result<std::string> read_input(const std::string& path, std::size_t most_bytes) {
    std::ifstream file(path == "-" ? "/dev/stdin" : path);
    if (!file && errno == ENOENT) return affinityd::fail("there is no such file or folder", path);
    if (!file) return affinityd::fail("cannot open", path, errno);
    std::string text(most_bytes + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (text.size() > most_bytes)
        return affinityd::fail(fmt::format("larger than {} MiB", most_bytes >> 20U), path);
    return text;
}

} // namespace

affinityd::Result<std::vector<policy::Document>> policy_documents(const std::vector<std::string>& paths,
                                                                  std::vector<policy::Diagnostic>& findings) {
    std::vector<policy::Document> documents;
    std::map<std::string, std::string> files;
    for (const auto& path : paths) {
        std::error_code code;
        if (std::filesystem::is_directory(path, code)) {
            auto found = policy::read_folders({path});
            if (!found) return std::unexpected(found.error());
            std::ranges::move(*found, std::back_inserter(documents));
            continue;
        }
        auto text = read_input(path, 1U << 20U); // as of installed files
        if (!text) return std::unexpected(text.error());
        const auto [first, fresh] = files.try_emplace(std::filesystem::path(path).filename().string(), path);
        if (!fresh && first->second != path)
            findings.push_back({.severity = policy::Severity::error,
                                .at = {path, 1, 1},
                                .length = 1,
                                .message = "a policy of this name is in " + first->second + " too",
                                .hint = "the file's name names the policy; rename one",
                                .source_line = {}});
        documents.push_back({.path = path, .text = std::move(*text), .is_named = true});
    }
    return documents;
}

std::vector<std::string> usual_folders(const Globals& globals) {
    std::vector<std::string> folders;
    const auto names = ask_daemon_object(globals, "GetNames").value_or(nlohmann::json());
    for (const auto& folder : list(names, "policy_folders"))
        folders.push_back(cell(folder));
    return folders.empty() ? policy::standard_folders() : folders;
}

PolicyPlaces policy_places(const Globals& globals, std::string name) {
    if (name.ends_with(".yaml")) name.resize(name.size() - 5);
    if (name.empty() || name.starts_with('.') || name.find('/') != std::string::npos)
        throw CallError{exit_usage, "this is no name of a policy: " + name};
    const auto folders = usual_folders(globals);
    PolicyPlaces places{"", folders.back() + "/" + name + ".yaml"};
    for (const auto& folder : folders) {
        const auto path = folder + "/" + name + ".yaml";
        std::error_code code;
        if (std::filesystem::exists(path, code)) places.in_force = path; // the last wins
    }
    return places;
}

bool is_mask(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code code;
    return fs::is_character_file(path, code) || (fs::is_regular_file(path, code) && fs::is_empty(path, code));
}

std::string file_named(const Globals& globals, const std::string& word) {
    if (word.contains('/') || word.ends_with(".yaml")) return word;
    if (const auto own = policy_places(globals, word).in_force; !own.empty() && !is_mask(own)) return own;
    auto example = "/usr/share/affinityd/examples/" + word + ".yaml";
    if (std::error_code code; std::filesystem::exists(example, code)) return example;
    throw CallError{exit_failure, "there is no policy and no example " + word};
}

std::expected<void, CallError> save_policy(const std::string& path, const std::optional<std::string>& before,
                                           const std::string& text) {
    namespace host = affinityd::host;
    const auto now = host::read_file(path);
    if (!now) return failed(now.error());
    if (*now != before) return failed(exit_failure, path + " was changed by another program in the meantime");
    struct stat old {};
    const bool is_new = ::stat(path.c_str(), &old) != 0;
    auto written = host::check_replaceable(path);
    if (written) written = host::replace_file(path, text, is_new ? 0644 : old.st_mode & 0777U);
    if (!written) return failed(written.error());
    const host::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const bool is_kept = is_new || (::fchown(file.get(), old.st_uid, old.st_gid) == 0 &&
                                    ::fchmod(file.get(), old.st_mode & 0777U) == 0);
    if (!is_kept || ::fsync(file.get()) != 0) return failed(exit_failure, "cannot write " + path);
    return {};
}

std::vector<policy::Document> read_policy_folders(const std::vector<std::string>& folders,
                                                  const Globals& globals) {
    for (const auto& folder : folders)
        if (std::error_code code; !std::filesystem::exists(folder, code))
            throw CallError{exit_failure, "there is no folder " + folder};
    return need(policy::read_folders(folders.empty() ? usual_folders(globals) : folders));
}

policy::PolicySet read_policy_set(const std::vector<std::string>& paths, const Globals& globals) {
    Findings findings;
    const auto documents =
        paths.empty() ? read_policy_folders({}, globals) : need(policy_documents(paths, findings));
    return set_of(documents, std::move(findings), [](const auto&) { return true; });
}

Preview preview_policy_set(const std::vector<std::string>& paths, const Globals& globals) {
    Findings findings;
    auto documents = read_policy_folders({}, globals);
    const auto named = need(policy_documents(paths, findings));
    const auto is_named = [&](const std::string& path) {
        return std::ranges::find(named, path, &policy::Document::path) != named.end();
    };
    std::erase_if(documents, [&](const auto& document) { return is_named(document.path); });
    std::ranges::copy(named, std::back_inserter(documents));
    Preview preview{set_of(documents, std::move(findings), is_named), {}};
    for (const auto& policy : preview.set.policies)
        if (is_named(policy.at.file)) preview.names.push_back(policy.name);
    return preview;
}

affinityd::Result<topology::Latencies> read_latency_table(const std::string& path) {
    const auto text = read_input(path, topology::most_csv_bytes);
    if (!text) return std::unexpected(text.error());
    auto latencies =
        text->starts_with('{') ? topology::latencies_from_json(*text) : topology::latencies_from_csv(*text);
    if (!latencies)
        latencies.error().subject =
            path + (latencies.error().subject.empty() ? "" : ": " + latencies.error().subject);
    return latencies;
}

void add_latency_option(CLI::App& verb, std::string& file) {
    verb.add_option("--latency", file,
                    "latencies between the machine's CPUs, for policies that say 'measured': CSV as of "
                    "core-to-core-latency, or what 'measure latency --json' printed; - is standard input")
        ->type_name("FILE");
}

KnownLatencies latencies_for(const Globals& globals, const std::string& file) {
    if (file.empty() && globals.is_recorded()) return {};
    const auto latencies = file.empty() ? topology::Latencies{} : need(read_latency_table(file));
    const auto root = need(affinityd::host::Root::open(globals.root));
    const auto machine = need(topology::read_topology(root));
    if (file.empty()) return measured_here(root, machine);
    return {topology::measured_level(latencies, machine), "", 0};
}

} // namespace affinityctl
