// SPDX-License-Identifier: Apache-2.0
#include "planner/check.hpp"

#include "affinityctl/offline/policy_documents.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"
#include "host/file.hpp"
#include "host/root.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/process_scan.hpp"
#include "machine/labels.hpp"
#include "machine/reader.hpp"
#include "policy/diagnostic.hpp"
#include "policy/reader.hpp"
#include "policy/set_check.hpp"
#include "policy/settings.hpp"
#include "steer/reads.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityctl {

namespace {

using Findings = std::vector<affinityd::policy::Diagnostic>;

/// Processes that the policies match now; no value: processes were not read.
using MatchCounts = std::optional<affinityd::planner::Matches>;

namespace policy = affinityd::policy;
using policy::Diagnostic;
using policy::Severity;

struct Counts {
    std::size_t errors = 0, warnings = 0, notes = 0;
};

Counts counts_of(const Findings& findings) {
    const auto of = [&](Severity severity) {
        return static_cast<std::size_t>(std::ranges::count(findings, severity, &Diagnostic::severity));
    };
    return {of(Severity::error), of(Severity::warning), of(Severity::note)};
}

/// Red, magenta and cyan, as compilers use them, around the word for the severity.
std::string colored(std::string text, Severity severity) {
    const auto word = std::string(to_string(severity)) + ":";
    const char* code = severity == Severity::error     ? "\033[1;31m"
                       : severity == Severity::warning ? "\033[1;35m"
                                                       : "\033[1;36m";
    const auto at = text.find(": " + word);
    return at == std::string::npos ? text : text.replace(at + 2, word.size(), code + word + "\033[0m");
}

std::string several(std::size_t number, const std::string& what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

std::size_t count_errors(const Findings& findings) { return counts_of(findings).errors; }

/// The document that `check --json` prints.
std::string check_json(const policy::ReadResult& result, const Findings& findings,
                       const MatchCounts& matches) {
    auto list = nlohmann::json::array();
    for (const auto& d : findings)
        list.push_back({{"severity", to_string(d.severity)},
                        {"file", d.at.file},
                        {"line", d.at.line},
                        {"column", d.at.column},
                        {"length", d.length},
                        {"message", d.message},
                        {"hint", d.hint}});
    auto names = nlohmann::json::array();
    for (const auto& policy : result.set.policies)
        names.push_back(policy.name);
    auto overrides = nlohmann::json::array();
    for (const auto& o : result.set.overrides)
        overrides.push_back({{"name", o.name}, {"path", o.path}, {"by", o.by}, {"masked", o.masked}});
    nlohmann::json matched = nullptr;
    for (std::size_t at = 0; matches && at < matches->processes.size(); ++at)
        matched[result.set.policies[at].name] = matches->processes[at];
    const auto counts = counts_of(findings);
    const nlohmann::json document{{"ok", counts.errors == 0},    {"errors", counts.errors},
                                  {"warnings", counts.warnings}, {"notes", counts.notes},
                                  {"policies", names},           {"overrides", overrides},
                                  {"processes", matched},        {"diagnostics", list}};
    return dump(document, 2) + "\n";
}

/// The same for a person: what overrides what, each finding with its source line, what is matched now, then
/// how many findings there are.
std::string check_text(const policy::ReadResult& result, const Findings& findings, const MatchCounts& matches,
                       bool color) {
    std::string text;
    for (const auto& o : result.set.overrides)
        text += printable(o.by) + ": " + (o.masked ? "masks " : "overrides ") + printable(o.path) + "\n";
    for (const auto& d : findings) {
        auto line = policy::to_string(d, true);
        text += (color ? colored(std::move(line), d.severity) : line) + "\n";
    }
    for (std::size_t at = 0; matches && at < matches->processes.size(); ++at)
        if (const auto number = matches->processes[at]; number > 0)
            text += result.set.policies[at].name + ": " + std::to_string(number) +
                    (number == 1 ? " process matches now\n" : " processes match now\n");
    const auto counts = counts_of(findings);
    const auto policies = std::ranges::count_if(result.set.policies, [&](const policy::Policy& policy) {
        return std::ranges::none_of(findings, [&](const Diagnostic& finding) {
            return finding.severity == Severity::error && finding.at.file == policy.at.file;
        });
    });
    return text + several(counts.errors, "error") + ", " + several(counts.warnings, "warning") + ", " +
           several(counts.notes, "note") + "; " + std::to_string(policies) +
           (policies == 1 ? " policy" : " policies") + " without errors\n";
}

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

/// CPUAffinity= of a unit's files on this machine; "": it has none.
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

/// Units that the machine has files of, and the users of etc/passwd. A recording has neither.
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

using affinityd::Result;
namespace policy = affinityd::policy;
using affinityd::planner::Matches;
using policy::Severity;

struct CheckOptions {
    std::vector<std::string> paths;
    bool strict = false;
};

/// Processes that the policies match now; no value on a recording without processes.
std::optional<Matches> on_processes(const policy::PolicySet& set, const affinityd::host::Root& root) {
    namespace inventory = affinityd::inventory;
    inventory::FactSources sources(root, inventory::ask_name_service);
    std::vector<std::shared_ptr<inventory::ProcessFacts>> kept;
    for (const int pid : inventory::list_pids(root).value_or(std::vector<int>{}))
        if (const auto scan = inventory::ProcessScan::open(root, pid, &sources); scan && *scan)
            kept.push_back((*scan)->shared_facts());
    if (kept.empty()) return std::nullopt;
    std::vector<const inventory::ProcessFacts*> processes;
    for (const auto& facts : kept)
        processes.push_back(facts.get());
    return affinityd::planner::check_matches(set, processes, read_known_names(root));
}

/// A library that programs ask for the number of CPUs, among those that the processes have mapped; "": none.
std::string counting_library(const affinityd::host::Root& root, const std::vector<int>& pids) {
    for (const int pid : pids) {
        const auto maps = root.proc().text(fmt::format("{}/maps", pid)).value_or("");
        for (const char* library : {"libjvm", "libgomp", "libomp", "libiomp5"})
            if (maps.find(fmt::format("/{}.so", library)) != std::string::npos) return library;
    }
    return {};
}

/// A unit's own CPUs, which the policy of its processes replaces.
void tell_of_unit_affinity(const policy::Policy& policy, const std::set<std::string>& units, Findings& into) {
    if (policy.prior == policy::Prior::keep || policy.model == policy::Model::irq ||
        policy.model == policy::Model::none)
        return;
    for (const auto& unit : units)
        if (const auto cpus = unit_affinity(unit); !cpus.empty())
            into.push_back({.severity = Severity::note,
                            .at = policy.at,
                            .length = 1,
                            .message = fmt::format(
                                "{} has CPUAffinity={} of its own, which this policy replaces", unit, cpus),
                            .hint = "remove it there, or write prior: keep",
                            .source_line = {}});
}

/// Policies that steer, where the kernel does not let a daemon do it. Only root can find out.
void tell_of_steering(const policy::PolicySet& set, const affinityd::host::Root& root, Findings& into) {
    const auto steers = [](const policy::Policy& one) {
        return one.model == policy::Model::full && one.steer != policy::Steer::none;
    };
    const auto first = std::ranges::find_if(set.policies, steers);
    if (first == set.policies.end() || ::geteuid() != 0) return;
    if (const auto reads = affinityd::steer::Reads::open(root, {.with_takers = true}); !reads)
        into.push_back({.severity = Severity::note,
                        .at = first->at,
                        .length = 1,
                        .message = "connections cannot be steered to their workers here, and reads are not "
                                   "counted: " +
                                   reads.error().message,
                        .hint = "affinityd(8) says what BPF needs; steer: none does without it",
                        .source_line = {}});
}

/// What the machine adds.
struct Here {
    Findings findings;
    std::optional<Matches> matches;
};

/// An Error if the machine cannot be read.
Result<Here> on_machine(const policy::PolicySet& set, const std::string& path) {
    const auto root = affinityd::host::Root::open(path);
    if (!root) return std::unexpected(root.error());
    auto machine = affinityd::machine::read_machine(*root);
    if (!machine) return std::unexpected(machine.error());
    Here here{std::move(machine->label_findings), on_processes(set, *root)};
    affinityd::planner::CheckedHere known;
    for (std::size_t i = 0; here.matches && i < set.policies.size(); ++i) {
        const auto& one = set.policies[i];
        if (auto library = counting_library(*root, here.matches->pids[i]); !library.empty())
            known.counting.emplace(one.name, std::move(library));
        if (root->is_live()) tell_of_unit_affinity(one, here.matches->units[i], here.findings);
    }
    if (root->is_live()) tell_of_steering(set, *root, here.findings);
    std::ranges::move(affinityd::planner::check_on_machine(set, *machine, known),
                      std::back_inserter(here.findings));
    if (here.matches) std::ranges::move(here.matches->notes, std::back_inserter(here.findings));
    return here;
}

/// A file of the name of the daemon's settings is no policy.
std::pair<std::vector<std::string>, std::vector<std::string>>
settings_apart(const std::vector<std::string>& paths) {
    std::pair<std::vector<std::string>, std::vector<std::string>> parts;
    for (const auto& path : paths) {
        const bool is_settings = path.substr(path.rfind('/') + 1) == "affinityd.yaml";
        (is_settings ? parts.second : parts.first).push_back(path);
    }
    return parts;
}

/// `usual`: that at the usual place too, if there is one.
Result<void> check_settings_files(std::vector<std::string> paths, bool usual, Findings& findings) {
    if (usual) paths.emplace_back(policy::standard_settings);
    for (const auto& path : paths) {
        const auto text = affinityd::host::read_file(path);
        if (!text) return std::unexpected(text.error());
        if (!*text && !usual) return affinityd::fail("there is no such file", path);
        if (!*text) continue;
        std::ranges::move(policy::check_settings(path, **text), std::back_inserter(findings));
    }
    return {};
}

int check(const CheckOptions& options, const Globals& globals) {
    Findings findings;
    const auto [policies, settings] = settings_apart(options.paths);
    if (auto read = check_settings_files(settings, options.paths.empty(), findings); !read)
        return complain(read.error());
    const auto read_policy_files = [&]() -> Result<std::vector<policy::Document>> {
        if (options.paths.empty()) return policy::read_folders(daemon_folders(globals));
        // Settings alone are no reason to look at the daemon's policies.
        if (policies.empty()) return {};
        return policy_documents(policies, findings);
    };
    auto documents = read_policy_files();
    if (!documents) return complain(documents.error());
    // Files of forms of labels are another language.
    std::erase_if(*documents, [&](const policy::Document& document) {
        const bool is_labels = affinityd::machine::has_labels(document.text);
        if (is_labels)
            std::ranges::move(affinityd::machine::check_labels(document.path, document.text),
                              std::back_inserter(findings));
        return is_labels;
    });
    auto result = policy::read_policies(*documents);
    std::ranges::move(result.diagnostics, std::back_inserter(findings));
    std::ranges::move(policy::advice(result.set), std::back_inserter(findings));
    if (!globals.is_recorded()) policy::resolve_programs(result.set);
    auto here = on_machine(result.set, globals.root);
    if (!here) return complain(here.error());
    std::ranges::move(here->findings, std::back_inserter(findings));
    policy::add_source_lines(findings, *documents);
    policy::sort_by_place(findings);
    for (auto& d : findings)
        if (options.strict && d.severity == Severity::warning) d.severity = Severity::error;
    std::ranges::stable_sort(findings, std::ranges::greater{}, &policy::Diagnostic::severity);
    if (globals.json)
        fmt::print("{}", check_json(result, findings, here->matches));
    else
        fmt::print("{}", check_text(result, findings, here->matches, globals.color));
    return count_errors(findings) > 0 ? exit_findings : exit_ok;
}

} // namespace

void add_check(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand(
        "check", "what is wrong with policy files, here or on a recorded machine; needs no daemon");
    const auto options = std::make_shared<CheckOptions>();
    verb->add_flag("--strict", options->strict, "warnings are errors");
    verb->add_option("PATH", options->paths,
                     "policy files, folders of them, or an affinityd.yaml (default: the daemon's own)");
    verb->callback([options, &globals, &status] { status = check(*options, globals); });
}

} // namespace affinityctl
