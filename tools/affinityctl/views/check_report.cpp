// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/check_report.hpp"

#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace affinityctl {

namespace policy = affinityd::policy;
using policy::Diagnostic;
using policy::Severity;

namespace {

struct Counts {
    std::size_t errors = 0, warnings = 0, notes = 0;
};

Counts count(const Findings& findings) {
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

} // namespace

std::size_t count_errors(const Findings& findings) { return count(findings).errors; }

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
    const auto counts = count(findings);
    const nlohmann::json document{{"ok", counts.errors == 0},    {"errors", counts.errors},
                                  {"warnings", counts.warnings}, {"notes", counts.notes},
                                  {"policies", names},           {"overrides", overrides},
                                  {"processes", matched},        {"diagnostics", list}};
    return dump(document, 2) + "\n";
}

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
    const auto counts = count(findings);
    const auto policies = result.set.policies.size();
    return text + several(counts.errors, "error") + ", " + several(counts.warnings, "warning") + ", " +
           several(counts.notes, "note") + "; " + std::to_string(policies) +
           (policies == 1 ? " policy" : " policies") + " without errors\n";
}

} // namespace affinityctl
