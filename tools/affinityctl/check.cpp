// SPDX-License-Identifier: Apache-2.0
#include "planner/check.hpp"

#include "documents.hpp"
#include "host/root.hpp"
#include "inventory/scan.hpp"
#include "netdev/reader.hpp"
#include "policy/reader.hpp"
#include "topology/reader.hpp"
#include "verb.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace affinityctl {

namespace {

using affinityd::Result;
namespace policy = affinityd::policy;
using policy::Diagnostic;
using policy::Severity;

struct Options {
    std::vector<std::string> paths;
    bool strict = false;
};

std::string name_of(Severity severity) {
    switch (severity) {
    case Severity::note:
        return "note";
    case Severity::warning:
        return "warning";
    case Severity::error:
        break;
    }
    return "error";
}

/// Notes about policies that nobody is under now; none on a recording without processes.
std::vector<Diagnostic> on_processes(const policy::PolicySet& set, const affinityd::host::Root& root) {
    namespace inventory = affinityd::inventory;
    inventory::FactSources sources(root, inventory::ask_name_service);
    std::vector<std::shared_ptr<inventory::ProcessFacts>> kept;
    inventory::Scan scan(root, &sources);
    scan.step([] { return false; },
              [&](inventory::Process&& process) { kept.push_back(std::move(process.facts)); });
    if (kept.empty()) return {};
    std::vector<const inventory::ProcessFacts*> processes;
    for (const auto& facts : kept)
        processes.push_back(facts.get());
    return affinityd::planner::check_matches(set, processes);
}

/// What the machine adds; an Error if there is none to be read.
Result<std::vector<Diagnostic>> on_machine(const policy::PolicySet& set, const std::string& path) {
    const auto root = affinityd::host::Root::open(path);
    if (!root) return std::unexpected(root.error());
    const auto topology = affinityd::topology::read_topology(*root);
    if (!topology) return std::unexpected(topology.error());
    const auto nics = affinityd::netdev::read_nics(*root);
    if (!nics) return std::unexpected(nics.error());
    auto findings = affinityd::planner::check_on_machine(set, *topology, *nics);
    std::ranges::move(on_processes(set, *root), std::back_inserter(findings));
    return findings;
}

struct Counts {
    std::size_t errors = 0, warnings = 0, notes = 0;
};

Counts count(const std::vector<Diagnostic>& findings) {
    const auto of = [&](Severity severity) {
        return static_cast<std::size_t>(std::ranges::count(findings, severity, &Diagnostic::severity));
    };
    return {of(Severity::error), of(Severity::warning), of(Severity::note)};
}

void print_json(const policy::ReadResult& result, const std::vector<Diagnostic>& findings) {
    auto list = nlohmann::json::array();
    for (const auto& d : findings)
        list.push_back({{"severity", name_of(d.severity)},
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
    const auto counts = count(findings);
    const nlohmann::json document{{"ok", counts.errors == 0},    {"errors", counts.errors},
                                  {"warnings", counts.warnings}, {"notes", counts.notes},
                                  {"policies", names},           {"overrides", overrides},
                                  {"diagnostics", list}};
    // File names may be any bytes.
    std::cout << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

/// Red, magenta and cyan as compilers have it, around the word that says how bad it is.
std::string colored(std::string text, Severity severity) {
    const std::string word = name_of(severity) + ":";
    const char* code = severity == Severity::error     ? "\033[1;31m"
                       : severity == Severity::warning ? "\033[1;35m"
                                                       : "\033[1;36m";
    const auto at = text.find(": " + word);
    return at == std::string::npos ? text : text.replace(at + 2, word.size(), code + word + "\033[0m");
}

std::string several(std::size_t number, const std::string& what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

void print_text(const policy::ReadResult& result, const std::vector<Diagnostic>& findings, bool color) {
    for (const auto& o : result.set.overrides)
        std::cout << o.by << ": " << (o.masked ? "masks " : "overrides ") << o.path << "\n";
    for (const auto& d : findings) {
        auto text = policy::to_string(d, true);
        std::cout << (color ? colored(std::move(text), d.severity) : text) << "\n";
    }
    const auto counts = count(findings);
    std::cout << several(counts.errors, "error") << ", " << several(counts.warnings, "warning") << ", "
              << several(counts.notes, "note") << "; " << result.set.policies.size()
              << (result.set.policies.size() == 1 ? " policy" : " policies") << " in force\n";
}

int check(const Options& options, const Globals& globals) {
    std::vector<Diagnostic> findings;
    const auto documents = policy_documents(options.paths, findings);
    if (!documents) {
        std::cerr << "affinityctl: " << documents.error().to_string() << "\n";
        return exit_failure;
    }
    auto result = policy::read_policies(*documents);
    std::ranges::move(result.diagnostics, std::back_inserter(findings));
    auto here = on_machine(result.set, globals.root);
    if (!here) {
        std::cerr << "affinityctl: " << here.error().to_string() << "\n";
        return exit_failure;
    }
    std::ranges::move(*here, std::back_inserter(findings));
    policy::add_source_lines(findings, *documents);
    policy::sort_by_place(findings);
    for (auto& d : findings)
        if (options.strict && d.severity == Severity::warning) d.severity = Severity::error;
    if (globals.json)
        print_json(result, findings);
    else
        print_text(result, findings, globals.color);
    return count(findings).errors > 0 ? exit_findings : exit_ok;
}

} // namespace

void add_check(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand(
        "check", "what is wrong with policy files, here or on a recorded machine; needs no daemon");
    const auto options = std::make_shared<Options>();
    verb->add_flag("--strict", options->strict, "warnings are errors");
    verb->add_option("PATH", options->paths,
                     "policy files, or folders of them (default: the daemon's folders)");
    verb->callback([options, &globals, &status] { status = check(*options, globals); });
}

} // namespace affinityctl
