// SPDX-License-Identifier: Apache-2.0
// affinityctl check: faults of policy files. affinityctl policies: where each policy comes from, what it
// overrides and holds now; or one policy in full.
#include "affinityctl/client/answers.hpp"
#include "affinityctl/reading/servers.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/glob.hpp"
#include "base/text.hpp"
#include "host/file.hpp"
#include "host/root.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/process_files.hpp"
#include "inventory/process_scan.hpp"
#include "irq/irq.hpp"
#include "machine/labels.hpp"
#include "machine/reader.hpp"
#include "planner/check.hpp"
#include "policy/cgroup_path.hpp"
#include "policy/diagnostic.hpp"
#include "policy/reader.hpp"
#include "policy/set_check.hpp"
#include "policy/settings.hpp"
#include "status/findings.hpp"
#include "steer/reads.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
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
#include <fmt/ranges.h>
#include <unistd.h>

namespace affinityctl {

namespace {

namespace fs = std::filesystem;
namespace inventory = affinityd::inventory;
namespace policy = affinityd::policy;
namespace status = affinityd::status;
using affinityd::parse_number;
using affinityd::host::Root;
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

constexpr std::array unit_folders{"/usr/lib/systemd/system", "/lib/systemd/system", "/run/systemd/system",
                                  "/etc/systemd/system"};

/// In the order of their names; none where there is no such folder.
std::set<fs::path> files_in(const fs::path& folder) {
    std::set<fs::path> files;
    std::error_code code;
    for (fs::directory_iterator at(folder, code); !code && at != fs::directory_iterator(); at.increment(code))
        files.insert(at->path());
    return files;
}

/// CPUAffinity= of a unit's files on this machine, drop-ins last; "": it has none.
std::string unit_affinity(const std::string& unit) {
    constexpr std::string_view key = "CPUAffinity=";
    std::vector<std::string> names{unit};
    if (const auto at = unit.find('@'), dot = unit.rfind('.'); at < dot && dot != std::string::npos)
        names.insert(names.begin(), unit.substr(0, at + 1) + unit.substr(dot)); // its template
    std::vector<fs::path> files;
    for (const auto& name : names)
        for (const char* folder : unit_folders)
            files.push_back(fs::path(folder) / name);
    for (const auto& name : names)
        for (const char* folder : unit_folders)
            std::ranges::copy_if(files_in(fs::path(folder) / (name + ".d")), std::back_inserter(files),
                                 [](const fs::path& file) { return file.extension() == ".conf"; });
    std::string value; // of the last assignment; an empty one takes back those before it
    for (const auto& file : files) {
        std::ifstream in(file);
        for (std::string line; std::getline(in, line);)
            if (line.starts_with(key)) value = line.substr(key.size());
    }
    return value;
}

/// Units that the machine has files of, and the users of etc/passwd. A recording has neither.
affinityd::planner::KnownNames read_known_names(const Root& root) {
    affinityd::planner::KnownNames names;
    const auto passwd = root.etc().text("passwd").value_or("");
    for (const auto line : affinityd::split(passwd, '\n'))
        if (const auto colon = line.find(':'); colon != std::string_view::npos && colon > 0)
            names.users.emplace_back(line.substr(0, colon));
    for (const char* folder : unit_folders)
        if (root.is_live())
            for (const auto& file : files_in(folder))
                names.units.push_back(file.filename().string());
    return names;
}

struct CheckOptions {
    std::vector<std::string> paths, settings;
    bool strict = false;
};

/// Processes that the policies match now; no value on a recording without processes.
std::optional<Matches> on_processes(const policy::PolicySet& set, const Root& root) {
    inventory::FactSources sources(root, inventory::ask_name_service);
    std::vector<std::shared_ptr<inventory::ProcessFacts>> kept;
    std::vector<const inventory::ProcessFacts*> processes;
    for (const int pid : inventory::list_pids(root).value_or(std::vector<int>{}))
        if (const auto scan = inventory::ProcessScan::open(root, pid, &sources); scan && *scan) {
            kept.push_back((*scan)->shared_facts());
            processes.push_back(kept.back().get());
        }
    if (kept.empty()) return std::nullopt;
    return affinityd::planner::check_matches(set, processes, read_known_names(root));
}

/// A finding that `status` would tell in the same words.
void tell(Findings& into, const policy::Policy& about, status::Ailment kind,
          const std::vector<std::string>& seen) {
    auto found = status::finding(kind, "", "", seen);
    into.push_back(
        policy::finding(found.severity == status::Severity::note ? Severity::note : Severity::warning,
                        about.at, 1, std::move(found.problem.message), std::move(found.problem.hint)));
}

void note(Findings& into, const policy::Policy& about, std::string message, std::string hint) {
    into.push_back(policy::finding(Severity::note, about.at, 1, std::move(message), std::move(hint)));
}

/// A unit's own CPUs, which the policy of its processes replaces.
void tell_of_unit_affinity(const policy::Policy& policy, const std::set<std::string>& units, Findings& into) {
    const bool places_tasks = policy.model == policy::Model::process || policy.model == policy::Model::full;
    if (policy.prior == policy::Prior::keep || !places_tasks) return;
    for (const auto& unit : units)
        if (const auto cpus = unit_affinity(unit); !cpus.empty())
            tell(into, policy, status::Ailment::own_cpus, {unit + " has", "its", "CPUAffinity=" + cpus});
}

/// Processes that no cpuset of a unit can hold.
void tell_of_fences(const policy::Policy& policy, const std::vector<int>& pids, const Root& root,
                    Findings& into) {
    if (policy.means != policy::Means::cpuset) return;
    if (!inventory::has_unified_cgroups(root.sys()))
        return tell(into, policy, status::Ailment::no_unified, {});
    if (std::ranges::any_of(pids, [&](int pid) {
            const auto scan = inventory::ProcessScan::open(root, pid);
            return scan && *scan && !policy::find_fence((*scan)->facts().cgroup());
        }))
        tell(into, policy, status::Ailment::no_unit, {});
}

/// Thread rules whose names no thread of the processes has. PostgreSQL and others give each process a title,
/// which is its command line.
void tell_of_threads(const policy::Policy& policy, const std::vector<int>& pids, const Root& root,
                     Findings& into) {
    std::set<std::string> names;
    std::map<std::string, int> titles; // command line -> pid
    for (const int pid : pids) {
        for (const auto& thread :
             inventory::read_threads(root, pid).value_or(std::vector<inventory::Thread>{}))
            names.insert(thread.comm);
        if (const auto scan = inventory::ProcessScan::open(root, pid); scan && *scan)
            titles.emplace((*scan)->facts().cmdline(), pid);
    }
    for (const auto& rule : policy.threads) {
        const auto has_rule = [&](const std::string& name) {
            return std::ranges::any_of(rule.names,
                                       [&](const auto& pattern) { return pattern.matches(name); });
        };
        if (names.empty() || rule.names.empty() || std::ranges::any_of(names, has_rule)) continue;
        const auto& wanted = rule.names.front().text();
        // "postgres: walwriter" is meant to be that of "postgres: 15/main: walwriter".
        std::string title;
        for (const auto word : affinityd::split_words(wanted))
            title += (title.empty() ? "" : "*") + std::string(word);
        title += title.ends_with('*') ? "" : "*";
        const auto found = std::ranges::find_if(
            titles, [&](const auto& one) { return affinityd::glob_match(title, one.first); });
        std::string hint = fmt::format("they are named {}", fmt::join(names, ", "));
        if (found != titles.end())
            hint =
                fmt::format("it is the title of pid {}, which is a command line: write a policy of its own "
                            "with match: {{cmdline: {}}}",
                            found->second, policy::yaml_text(title));
        else if (constexpr std::size_t most = 100; hint.size() > most)
            hint = fmt::format("affinityctl watch {} shows their names", policy.name);
        into.push_back(policy::finding(Severity::note, rule.at, 1,
                                       "no thread of its processes is named " + policy::in_quotes(wanted) +
                                           (rule.names.size() > 1 ? " or as the others of this rule" : "") +
                                           " now",
                                       std::move(hint)));
    }
}

/// `irqs` that no interrupt has.
void tell_of_irqs(const policy::Policy& policy, const affinityd::irq::InterruptTable& table, Findings& into) {
    std::set<std::string> names;
    for (const auto& line : table.irqs) {
        names.insert(line.actions.begin(), line.actions.end());
        if (!line.pci.empty()) names.insert(line.pci);
    }
    if (names.empty() || policy.model == policy::Model::none) return;
    for (const auto& pattern : policy.irqs) {
        const auto& wanted = pattern.text();
        if (std::ranges::any_of(names, [&](const std::string& name) { return pattern.matches(name); }))
            continue;
        const auto number = parse_number<unsigned>(wanted);
        const auto* line = number ? table.find(*number) : nullptr;
        auto hint = policy::did_you_mean(wanted, std::vector<std::string_view>(names.begin(), names.end()));
        if (line != nullptr && !line->actions.empty())
            hint = fmt::format("numbers change from boot to boot: interrupt {} has the handler {}", wanted,
                               policy::in_quotes(line->actions.front()));
        else if (hint.empty())
            hint = "affinityctl irqs lists the handlers";
        note(into, policy, "'irqs': no interrupt here has the handler " + policy::in_quotes(wanted),
             std::move(hint));
    }
}

/// Policies that steer, where the kernel does not let a daemon do it. Only root can find out.
void tell_of_steering(const policy::PolicySet& set, const Root& root, Findings& into) {
    const auto first = std::ranges::find_if(set.policies, [](const policy::Policy& one) {
        return one.model == policy::Model::full && one.steer != policy::Steer::none;
    });
    if (first == set.policies.end() || ::geteuid() != 0) return;
    if (const auto reads = affinityd::steer::Reads::open(root, {.with_takers = true}); !reads)
        tell(into, *first, status::Ailment::no_bpf, {reads.error().to_string()});
}

/// Adds the findings of the machine; returns the processes that match.
std::optional<Matches> check_here(const policy::PolicySet& set, const std::string& path, Findings& into) {
    const auto root = need(Root::open(path));
    const auto machine = need(affinityd::machine::read_machine(root));
    auto matches = on_processes(set, root);
    std::ranges::copy(machine.label_findings, std::back_inserter(into));
    affinityd::planner::CheckedHere known;
    for (std::size_t i = 0; matches && i < set.policies.size(); ++i) {
        const auto& one = set.policies[i];
        if (auto library = counting_library(root, matches->pids[i]); !library.empty())
            known.counting.emplace(one.name, std::move(library));
        tell_of_threads(one, matches->pids[i], root, into);
        if (!root.is_live()) continue;
        tell_of_unit_affinity(one, matches->units[i], into);
        tell_of_fences(one, matches->pids[i], root, into);
    }
    for (const auto& one : set.policies)
        tell_of_irqs(one, machine.irqs, into);
    if (root.is_live()) tell_of_steering(set, root, into);
    std::ranges::move(affinityd::planner::check_on_machine(set, machine, known), std::back_inserter(into));
    if (matches) std::ranges::copy(matches->notes, std::back_inserter(into));
    return matches;
}

/// The settings that are named, or those at the usual place if there are any.
void check_settings_files(const std::vector<std::string>& paths, bool usual, Findings& into) {
    for (const auto& path : usual ? std::vector<std::string>{policy::standard_settings} : paths) {
        const auto text = need(affinityd::host::read_file(path));
        if (!text && !usual) throw CallError{exit_failure, path + ": there is no such file"};
        if (text) std::ranges::move(policy::check_settings(path, *text), std::back_inserter(into));
    }
}

Outcome run_check(const CheckOptions& options, const Globals& globals) {
    Findings findings;
    const bool usual = options.paths.empty() && options.settings.empty();
    // A file of the name of the daemon's settings is no policy.
    auto paths = options.paths;
    const auto rest = std::ranges::stable_partition(
        paths, [](const std::string& path) { return path.substr(path.rfind('/') + 1) != "affinityd.yaml"; });
    auto settings = options.settings;
    settings.insert(settings.end(), rest.begin(), rest.end());
    check_settings_files(settings, usual, findings);
    paths.erase(rest.begin(), rest.end());
    // Settings alone are no reason to look at the daemon's policies.
    auto documents = usual ? read_policy_folders({}, globals) : need(policy_documents(paths, findings));
    // Files of forms of labels are another language.
    std::erase_if(documents, [&](const policy::Document& document) {
        const bool is_labels = affinityd::machine::has_labels(document.text);
        if (is_labels)
            std::ranges::move(affinityd::machine::check_labels(document.path, document.text),
                              std::back_inserter(findings));
        return is_labels;
    });
    auto result = policy::read_policies(documents);
    std::ranges::move(result.diagnostics, std::back_inserter(findings));
    std::ranges::move(policy::advice(result.set), std::back_inserter(findings));
    if (!globals.is_recorded()) policy::resolve_programs(result.set);
    const auto matches = check_here(result.set, globals.root, findings);
    policy::add_source_lines(findings, documents);
    policy::sort_by_place(findings);
    for (auto& finding : findings)
        if (options.strict && finding.severity == Severity::warning) finding.severity = Severity::error;
    std::ranges::stable_sort(findings, std::ranges::greater{}, &Diagnostic::severity);
    return check_document(result, findings, matches);
}

struct PoliciesOptions {
    std::vector<std::string> folders;
    std::string name;
};

/// Errors by file.
std::map<std::string, std::size_t> faulty_files(const policy::ReadResult& read) {
    std::map<std::string, std::size_t> files;
    for (const auto& found : read.diagnostics)
        if (found.severity == policy::Severity::error) ++files[found.at.file];
    return files;
}

/// The daemon's report on a policy; null: it has none of that name.
json held_by(const json& status, std::string_view name) {
    for (const auto& one : list(status, "policies"))
        if (text(one, "name") == name) return one;
    return nullptr;
}

// clang-format off
constexpr Field listed_fields[] = {
    {"name", "POLICY", "text", "its name"},
    {"file", "FILE", "prose", "its file"},
    {"description", "", "text", "its description"},
    {"priority", "PRIORITY", "number", "its priority"},
    {"specificity", "", "number", "how narrow its match is"},
    {"affinity", "AFFINITY", "text", "none, irq, process, full or auto"},
    {"overrides", "", "text[]", "files of the same name that it overrides"},
    {"loaded", "", "flag", "the daemon has it"},
    {"released", "", "flag", "it was released by hand"},
    {"processes", "PROCESSES", "count?", "its processes, null without a daemon"},
    {"threads", "THREADS", "count?", "their threads"},
    {"queues", "QUEUES", "count?", "interrupts and steering of its queues"},
};
constexpr Field masked_fields[] = {
    {"name", "", "text", "the policy"},
    {"file", "", "text", "the masked file"},
    {"by", "", "text", "the empty file or link that masks it"},
};
constexpr Field faulty_fields[] = {
    {"name", "", "text", "the policy"},
    {"file", "", "text", "its file"},
    {"errors", "", "count", "errors in it"},
    {"loaded", "", "flag", "an earlier version is in force"},
};
constexpr Field policies_answer[] = {
    {"policies", "", "object[]", "policies that were read", listed_fields},
    {"masked", "", "object[]", "policies that are switched off", masked_fields},
    {"faulty", "", "object[]", "files with errors", faulty_fields},
    {"daemon", "", "flag", "a daemon answers"},
};
constexpr Field shown_fields[] = {
    {"name", "", "text", "the policy"},
    {"file", "", "text", "its file"},
    {"yaml", "", "text", "every key with the value that holds"},
};
// clang-format on

Outcome one_policy(const policy::ReadResult& read, const std::string& name) {
    std::vector<std::string> names;
    for (const auto& one : read.set.policies) {
        names.push_back(one.name);
        if (one.name != name) continue;
        const auto yaml = policy::to_yaml(one);
        Document document;
        document.value = record(shown_fields, {one.name, one.at.file, yaml});
        document.line("# " + one.at.file + ", every key with the value that holds");
        document.verbatim(yaml);
        return document;
    }
    for (const auto& [file, errors] : faulty_files(read))
        if (policy::policy_name(file) == name)
            return failed(exit_findings, "policy " + name +
                                             " has errors; affinityctl status says what is in force in its "
                                             "place, if anything");
    return failed(exit_failure, "there is no policy " + name + guess(name, names));
}

/// The policies that were read, and the daemon's `status` (or null) on them.
json policies_json(const policy::ReadResult& read, const json& status) {
    const auto& set = read.set;
    auto counts = queues_by(status, "policy");
    auto listed = json::array(), masked = json::array(), faulty = json::array();
    for (const auto& one : set.policies) {
        auto overrides = json::array();
        for (const auto& other : set.overrides)
            if (other.name == one.name) overrides.push_back(other.path);
        const auto held = held_by(status, one.name);
        listed.push_back(
            record(listed_fields,
                   {one.name, one.at.file, one.description, one.priority, policy::specificity(one.match),
                    one.model_auto ? "auto" : to_string(one.model), std::move(overrides), held.is_object(),
                    member(held, "released") == true, member(held, "processes"), member(held, "threads"),
                    held.is_null() ? json() : json(counts[one.name].wanted)}));
    }
    for (const auto& other : set.overrides)
        if (other.masked) masked.push_back(record(masked_fields, {other.name, other.path, other.by}));
    for (const auto& [file, errors] : faulty_files(read)) {
        const auto name = policy::policy_name(file);
        faulty.push_back(record(faulty_fields, {name, file, errors, held_by(status, name).is_object()}));
    }
    return record(policies_answer,
                  {std::move(listed), std::move(masked), std::move(faulty), status.is_object()});
}

Document policies_document(json value) {
    Document document;
    Document::Table table{
        .fields = listed_fields,
        .columns = {"POLICY", "PRIORITY", "AFFINITY", "PROCESSES", "THREADS", "QUEUES", "FILE"},
        .folded = true};
    for (json one : value["policies"]) {
        if (one["released"].get<bool>()) one["affinity"] = text_of(one, "affinity") + ", released";
        const auto overrides = one["overrides"];
        table.rows.push_back(std::move(one));
        for (const auto& path : overrides)
            table.rows.push_back({{"name", ""}, {"file", "  overrides " + path.get<std::string>()}});
    }
    for (const auto& one : value["masked"])
        table.rows.push_back({{"name", one["name"]},
                              {"affinity", "masked"},
                              {"file", text_of(one, "by") + " masks " + text_of(one, "file")}});
    for (const auto& one : value["faulty"])
        table.rows.push_back(
            {{"name", one["name"]},
             {"affinity", "FAULTY"},
             {"file", text_of(one, "file") + ": " +
                          affinityd::counted(one["errors"].get<std::size_t>(), "error") +
                          (one["loaded"].get<bool>() ? "; an earlier version is in force" : "")}});
    if (table.rows.empty())
        document.line(no_policies);
    else
        document.add(std::move(table));
    if (!value["daemon"].get<bool>())
        document.line("No daemon answers: what the policies hold is not known.");
    for (const auto& one : value["policies"])
        if (value["daemon"].get<bool>() && !one["loaded"].get<bool>())
            document.line(text_of(one, "name") +
                          " is not loaded: `affinityctl reload` does it, or says why not.");
    document.value = std::move(value);
    return document;
}

Outcome run_policies(const PoliciesOptions& options, const Globals& globals) {
    const auto read = policy::read_policies(read_policy_folders(options.folders, globals));
    Document findings;
    for (const auto& diagnostic : read.diagnostics)
        add_finding(diagnostic, findings);
    fmt::print(stderr, "{}", to_text(findings, Page::of_output(false, true)));
    if (!options.name.empty()) return one_policy(read, options.name);
    auto document = policies_document(policies_json(read, status_if_any(globals)));
    document.code = read.ok() ? exit_ok : exit_findings;
    document.by_columns = true;
    return document;
}

} // namespace

Outcome documents::check(const Globals& globals, const std::vector<std::string>& paths) {
    return run_check({.paths = paths, .settings = {}}, globals);
}

void add_check(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] = add_verb(app,
                                          {.name = "check",
                                           .summary = "faults of policy files; needs no daemon",
                                           .example = "affinityctl check nginx.yaml",
                                           .answer = check_fields},
                                          globals, status, run_check);
    verb->add_flag("--strict", options->strict, "warnings are errors");
    add_repeated(*verb, "--settings", options->settings, "the daemon's settings, in a file of another name",
                 "FILE");
    verb->add_option("PATH", options->paths,
                     "policy files, folders of them, or an affinityd.yaml (default: the daemon's own)");
}

void add_policies(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "policies",
                  .summary = "where each policy comes from, what it overrides and holds",
                  .example = "affinityctl policies show nginx",
                  .answer = policies_answer},
                 globals, status, run_policies);
    add_repeated(*verb, "--policies", options->folders,
                 "folder instead of the daemon's; may be given again, the last wins", "DIR");
    verb->require_subcommand(0, 1);
    auto* show =
        add_verb(*verb,
                 {.name = "show",
                  .summary = "one policy with every key and the value that holds",
                  .example = "affinityctl policies show nginx",
                  .answer = shown_fields},
                 globals, status, [&globals, shown = options] { return run_policies(*shown, globals); });
    show->add_option("NAME", options->name, "the policy's name: its file's without .yaml")->required();
}

} // namespace affinityctl
