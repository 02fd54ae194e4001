// SPDX-License-Identifier: Apache-2.0
#include "planner/check.hpp"

#include "affinityctl/offline/policy_documents.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
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

namespace policy = affinityd::policy;
using affinityd::Result;
using affinityd::planner::Matches;
using nlohmann::json;
using policy::Diagnostic;
using policy::Severity;
using Findings = std::vector<Diagnostic>;

// clang-format off
constexpr Field override_fields[] = {
    {"name", "", "text", "the policy"},
    {"path", "", "text", "the file that is not read"},
    {"by", "", "text", "the file that takes its place"},
    {"masked", "", "flag", "that one is empty, and switches the policy off"},
};
constexpr Field diagnostic_fields[] = {
    {"severity", "", "text", "error, warning or note"},
    {"file", "", "text", "the file"},
    {"line", "", "count", "its line"},
    {"column", "", "count", "its column"},
    {"length", "", "count", "the length of the place, bytes"},
    {"message", "", "text", "the finding"},
    {"hint", "", "text", "the remedy, or empty"},
};
constexpr Field check_fields[] = {
    {"ok", "", "flag", "there are no errors"},
    {"errors", "", "count", "errors"},
    {"warnings", "", "count", "warnings"},
    {"notes", "", "count", "notes"},
    {"policies", "", "text[]", "policies that were read"},
    {"overrides", "", "object[]", "files that others override", override_fields},
    {"processes", "", "count{}?", "processes that each policy matches now; null if none were read"},
    {"diagnostics", "", "object[]", "the findings", diagnostic_fields},
};
// clang-format on

void add_finding(const Diagnostic& finding, Document& into) {
    constexpr std::array looks{Document::Look::name, Document::Look::mark, Document::Look::bad};
    const auto whole = policy::to_string(finding);
    const auto word = std::string(to_string(finding.severity)) + ":";
    const auto at = whole.find(": " + word);
    if (at == std::string::npos)
        into.line(whole);
    else
        into.add(Document::Line{{{whole.substr(0, at + 2)},
                                 {word, looks.at(static_cast<std::size_t>(finding.severity))},
                                 {whole.substr(at + 2 + word.size())}}});
    if (const auto source = policy::to_string(finding, true); source.size() > whole.size())
        into.add(Document::Verbatim{source.substr(whole.size() + 1), true});
}

/// Overrides, each finding with its source line, the processes that match now, and the number of findings.
Document check_document(const policy::ReadResult& result, const Findings& findings,
                        const std::optional<Matches>& matches) {
    const auto number_of = [&](Severity severity) {
        return static_cast<std::size_t>(std::ranges::count(findings, severity, &Diagnostic::severity));
    };
    const auto errors = number_of(Severity::error), warnings = number_of(Severity::warning),
               notes = number_of(Severity::note);
    Document document;
    json names = json::array(), overrides = json::array(), matched, found = json::array();
    for (const auto& each : result.set.overrides) {
        overrides.push_back(record(override_fields, {each.name, each.path, each.by, each.masked}));
        document.line(each.by + ": " + (each.masked ? "masks " : "overrides ") + each.path);
    }
    for (const auto& each : findings) {
        found.push_back(record(diagnostic_fields, {to_string(each.severity), each.at.file, each.at.line,
                                                   each.at.column, each.length, each.message, each.hint}));
        add_finding(each, document);
    }
    std::size_t good = 0;
    for (std::size_t at = 0; at < result.set.policies.size(); ++at) {
        const auto& one = result.set.policies[at];
        names.push_back(one.name);
        good += std::ranges::none_of(findings, [&](const Diagnostic& finding) {
            return finding.severity == Severity::error && finding.at.file == one.at.file;
        });
        if (!matches) continue;
        matched[one.name] = matches->processes[at];
        if (const auto number = matches->processes[at]; number > 0)
            document.line(one.name + ": " +
                          affinityd::counted(number, "process matches now", "processes match now"));
    }
    document.line(fmt::format("{}, {}, {}; {} without errors", affinityd::counted(errors, "error"),
                              affinityd::counted(warnings, "warning"), affinityd::counted(notes, "note"),
                              affinityd::counted(good, "policy", "policies")));
    document.value = record(check_fields, {errors == 0, errors, warnings, notes, std::move(names),
                                           std::move(overrides), std::move(matched), std::move(found)});
    document.code = errors > 0 ? exit_findings : exit_ok;
    return document;
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

/// Findings of the machine.
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

Outcome run_check(const CheckOptions& options, const Globals& globals) {
    Findings findings;
    const auto [policies, settings] = settings_apart(options.paths);
    if (auto read = check_settings_files(settings, options.paths.empty(), findings); !read)
        return failed(read.error());
    const auto read_policy_files = [&]() -> Result<std::vector<policy::Document>> {
        if (options.paths.empty()) return policy::read_folders(daemon_folders(globals));
        // Settings alone are no reason to look at the daemon's policies.
        if (policies.empty()) return {};
        return policy_documents(policies, findings);
    };
    auto documents = read_policy_files();
    if (!documents) return failed(documents.error());
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
    if (!here) return failed(here.error());
    std::ranges::move(here->findings, std::back_inserter(findings));
    policy::add_source_lines(findings, *documents);
    policy::sort_by_place(findings);
    for (auto& d : findings)
        if (options.strict && d.severity == Severity::warning) d.severity = Severity::error;
    std::ranges::stable_sort(findings, std::ranges::greater{}, &policy::Diagnostic::severity);
    return check_document(result, findings, here->matches);
}

} // namespace

void add_check(CLI::App& app, Globals& globals, int& status) {
    const auto options = std::make_shared<CheckOptions>();
    auto* verb = add_verb(app,
                          {.name = "check",
                           .summary = "faults of policy files; needs no daemon",
                           .example = "affinityctl check nginx.yaml",
                           .answer = check_fields},
                          globals, status, [&globals, options] { return run_check(*options, globals); });
    verb->add_flag("--strict", options->strict, "warnings are errors");
    verb->add_option("PATH", options->paths,
                     "policy files, folders of them, or an affinityd.yaml (default: the daemon's own)");
}

} // namespace affinityctl
